"""Tests compute on whatever backend is the default; CANDELABRA_TEST_DEVICE says another one."""

from candelabra.testing.on_device import *  # noqa: F403
