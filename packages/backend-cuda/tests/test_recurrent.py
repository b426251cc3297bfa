"""Recurrent layers on a device against the steps one by one in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.testing.reference import recurrent as reference

FLOATS = {"float32": 1e-4, "float64": 1e-11, "float16": 2e-2, "bfloat16": 1e-1}


def made(shape, dtype, seed):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    tensor = candelabra.tensor(values).to(getattr(candelabra, dtype))
    return tensor.to(candelabra.float64).numpy(), tensor


def assert_right(got, want, dtype):
    np.testing.assert_allclose(got.cpu().to(candelabra.float64).numpy(), want, rtol=FLOATS[dtype], atol=FLOATS[dtype])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", [(3, 2, 4), (1, 1, 1), (6, 33, 9), (2, 5, 64), (0, 2, 3), (3, 0, 3)], ids=str)
def test_lstm(cuda, sizes, dtype, reverse):
    steps, batch, hidden = sizes
    (a, gates), (h, h0), (c, c0) = (
        made(shape, dtype, seed) for seed, shape in enumerate([(steps, batch, 4 * hidden), (batch, hidden), (batch, hidden)])
    )
    w, weight = made((4 * hidden, hidden), dtype, 3)
    w, weight = w / 8, weight / 8
    states = [tensor.to(cuda) for tensor in (h0, c0, weight)]
    want = reference.forward(a, h, c, w, reverse)
    got = candelabra.ops.lstm_sequence(gates.to(cuda), *states, reverse)
    for one, other in zip(got, want, strict=True):
        assert_right(one, other, dtype)
    grads = [made(one.shape, dtype, 4 + i) for i, one in enumerate(want)]
    for given in ((0,), (0, 1, 2), (1,), ()):
        arrays = [grads[i][0] if i in given else None for i in range(3)]
        tensors = [grads[i][1].to(cuda) if i in given else None for i in range(3)]
        back = candelabra.ops.lstm_sequence_backward(*tensors, *states, *got, reverse)
        for one, other in zip(back, reference.backward(*arrays, h, c, w, *want, reverse), strict=True):
            scale = max(1.0, float(np.abs(other).max())) if other.size else 1.0
            assert_right(one / scale, other / scale, dtype)
