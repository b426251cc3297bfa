"""Comparison of the device type ``few`` with the CPU."""

from __future__ import annotations

import numpy as np

import candelabra
from candelabra import _C


def on_both(compute, tolerance=1e-4):
    """Check that a function of the device gives the same on both devices, with the same seed."""
    results = []
    for device in ("cpu", "few"):
        _C.manual_seed(3)
        results.append([part.detach().to("cpu") for part in compute(device)])
    for expected, got in zip(*results, strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(
            np.array(got.tolist()), np.array(expected.tolist()), rtol=tolerance, atol=tolerance / 10
        )


def values(*shape, device="cpu", seed=0, **options):
    """Return the same numbers on each device."""
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return candelabra.tensor(drawn.tolist(), device=device, **options)
