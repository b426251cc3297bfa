"""Test recurrent layers on a device against a loop over time steps in NumPy."""

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
        made(shape, dtype, seed)
        for seed, shape in enumerate([(steps, batch, 4 * hidden), (batch, hidden), (batch, hidden)])
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


#: Steps, batch, hidden size, and the number of rows of each step of a packed sequence.
LAYERS = [
    (6, 33, 9, []),
    (1, 1, 1, []),
    (3, 2, 64, []),
    (0, 2, 3, []),
    (3, 0, 3, []),
    (14, 5, 4, [5, 3, 3, 2, 1]),
    (43, 20, 9, [20, 20, 3]),
]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layer", LAYERS, ids=str)
@pytest.mark.parametrize(("cell", "width"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)])
def test_layer(cuda, cell, width, layer, dtype, reverse):
    steps, batch, hidden, sizes = layer
    over_time = (steps,) if sizes else (steps, batch)
    given = [
        made(shape, dtype, seed)
        for seed, shape in enumerate(
            [(*over_time, width * hidden), (batch, hidden), (batch, hidden), (width * hidden, hidden)]
        )
    ]
    given.append(made((width * hidden,), dtype, 4))
    arrays, tensors = [list(part) for part in zip(*given, strict=True)]
    arrays[3], tensors[3] = arrays[3] / 8, tensors[3] / 8
    for at, has in ((2, cell == "lstm"), (4, cell == "gru" and batch != 2)):
        if not has:
            arrays[at] = tensors[at] = None
    tensors = [tensor if tensor is None else tensor.to(cuda) for tensor in tensors]
    want = reference.sequence(*arrays, sizes, reverse, cell)
    got = candelabra.ops.recurrent_sequence(*tensors, sizes, reverse, cell)
    for one, other in zip(got, want, strict=True):
        assert one.shape == other.shape
        assert_right(one, other, dtype)
    grads = [made(one.shape, dtype, 5 + i) for i, one in enumerate(want)]
    for given in ((0,), (0, 1, 2), ()):
        of_arrays = [grads[i][0] if i in given else None for i in range(3)]
        of_tensors = [grads[i][1].to(cuda) if i in given else None for i in range(3)]
        back = candelabra.ops.recurrent_sequence_backward(*of_tensors, *tensors[1:4], *got, sizes, reverse, cell)
        kept = [one.cpu().to(candelabra.float64).numpy() for one in got]  # rounding may change the sign at a ReLU
        for one, other in zip(
            back, reference.sequence_backward(*of_arrays, *arrays[1:4], *kept, sizes, reverse, cell), strict=True
        ):
            scale = max(1.0, float(np.abs(other).max())) if other.size else 1.0
            assert_right(one / scale, other / scale, dtype)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
def test_layers_are_one_call_a_direction_without_cudnn(cuda, name, packed):
    nn, profiler = pytest.importorskip("candelabra.nn"), pytest.importorskip("candelabra.profiler")
    layers = getattr(nn, name)(3, 4, bidirectional=True).to(cuda)
    x = candelabra.ones(5, 2, 3, device=cuda)
    if packed:
        x = nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    with candelabra.backends.cudnn.flags(enabled=False), profiler.profile() as profile:
        layers(x)
    calls = [event.name for event in profile.events()]
    assert calls.count("recurrent_sequence") == 2
    assert not {"sigmoid", "tanh", "mm", "addmm"} & set(calls)
