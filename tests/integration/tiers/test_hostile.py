"""Hostile calls on a device with exactly the kernels of the tier "required" (few.py), with and
without the CPU fallback: none ends the process, and what raises has written nothing.
"""

import few
import pytest

from candelabra.testing import hostile

NAMESPACES = ["candelabra.ops", "candelabra", "candelabra.Tensor", "candelabra.linalg", "candelabra.nn.functional"]


@pytest.mark.parametrize("fallback", [True, False], ids=["fallback", "alone"])
def test_hostile_calls(fallback, monkeypatch):
    with few.distribution(fallback) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        report = hostile.run(NAMESPACES, calls=2, device="few")
    assert report.crashes == []
    assert report.wrong == []
    assert report.calls > 2000
