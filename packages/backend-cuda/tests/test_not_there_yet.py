"""What this version is: a device type that says what is missing, and harms nothing else."""

import pytest

import candelabra


def test_device_says_why_it_is_not_available():
    with pytest.raises(candelabra.BackendError, match="holds no kernels yet"):
        candelabra.device("cuda")


def test_listed_as_unavailable():
    assert "cuda" not in candelabra._C.loaded_device_types()
