"""Test stacks of recurrent layers by cuDNN against a loop over time steps in NumPy, and the
fallback without cuDNN.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

import candelabra
import candelabra_backend_cuda
from candelabra import ops
from candelabra.backends import cudnn
from candelabra.testing.reference import recurrent as reference

FLOATS = {"float32": 2e-5, "float64": 1e-11, "float16": 3e-2, "bfloat16": 2e-1}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
#: Lengths, batch, input size, hidden size, rows per step of a packed sequence, layers, directions,
#: biases.
STACKS = [
    ((4, 3), 3, 5, 6, [], 1, 1, True),
    ((3, 2), 2, 4, 8, [], 3, 2, True),
    ((1, 1), 1, 1, 1, [], 1, 2, False),
    ((11,), 4, 3, 5, [4, 3, 3, 1], 2, 2, True),
    ((7,), 3, 2, 4, [3, 3, 1], 2, 1, False),
    ((0, 2), 2, 3, 3, [], 2, 2, True),
    ((3, 0), 0, 3, 3, [], 1, 1, True),
]


def made(shape, dtype, seed, low=-1.0):
    """Return numbers of a dtype, as an array and as a CPU tensor."""
    tensor = candelabra.tensor(np.random.default_rng(seed).uniform(low, 1, shape)).to(getattr(candelabra, dtype))
    return tensor.to(candelabra.float64).numpy(), tensor


def arguments(stack, cell, dtype, device):
    """Return the arguments of a call, as arrays and on the device."""
    over_time, batch, size, hidden, sizes, layers, directions, has_biases = stack
    biases = 2 if has_biases else 0
    count = (
        directions
        * GATES[cell]
        * hidden
        * (size + hidden + biases + (layers - 1) * ((directions + 1) * hidden + biases))
    )
    first = (layers * directions, batch, hidden)
    pairs = [made(shape, dtype, seed) for seed, shape in enumerate([(*over_time, size), (count,), first, first])]
    pairs[1] = tuple(one / 2 for one in pairs[1])
    arrays, tensors = [list(part) for part in zip(*pairs, strict=True)]
    if cell != "lstm":
        arrays[3] = tensors[3] = None
    rest = (sizes, layers, directions == 2, has_biases, cell)
    return (*arrays, *rest), (*(None if tensor is None else tensor.to(device) for tensor in tensors), *rest)


def assert_right(got, want, dtype):
    assert tuple(got.shape) == want.shape
    scale = max(1.0, float(np.abs(want).max())) if want.size else 1.0
    limit = FLOATS[dtype] * scale
    np.testing.assert_allclose(got.cpu().to(candelabra.float64).numpy(), want, rtol=limit, atol=limit)


@pytest.fixture(params=["cudnn", "own kernels"])
def way(request):
    """Run with and without cuDNN, without TF32."""
    with cudnn.flags(enabled=request.param == "cudnn", allow_tf32=False):
        yield request.param


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_layers(cuda, way, stack, cell, dtype):
    arrays, tensors = arguments(stack, cell, dtype, cuda)
    wanted = reference.stack(*arrays)
    for got, want in zip(ops.recurrent_stack(*tensors), wanted, strict=True):
        assert_right(got, want, dtype)
    *results, reserve = ops.recurrent_stack_kept(*tensors)
    for got, want in zip(results, wanted, strict=True):
        assert_right(got, want, dtype)
    is_empty = 0 in stack[0]
    assert (reserve.numel() > 0) == (way == "cudnn" and not is_empty)
    if dtype not in ("float32", "float64"):
        return  # rounding may change the sign at a ReLU
    grads = [made(one.shape, dtype, 9 + i) for i, one in enumerate(wanted)]
    for given in ((0,), (0, 1, 2), (1,), ()):
        shown = [i for i in given if cell == "lstm" or i < 2]
        of_arrays = [grads[i][0] if i in shown else None for i in range(3)]
        of_tensors = [grads[i][1].to(cuda) if i in shown else None for i in range(3)]
        *first, sizes, layers, bidirectional, has_biases, _ = arrays
        rest = (sizes, layers, bidirectional, has_biases, cell)
        back = reference.stack_backward(*of_arrays, *first, wanted[0], np.empty(0), *rest)
        for got, want in zip(
            ops.recurrent_stack_backward(*of_tensors, *tensors[:4], results[0], reserve, *rest), back, strict=True
        ):
            assert_right(got, want, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn_tanh"])
def test_gradients_of_half_precisions(cuda, way, cell, dtype):
    arrays, tensors = arguments(STACKS[3], cell, dtype, cuda)
    output, _, _, reserve = ops.recurrent_stack_kept(*tensors)
    grad, of_output = made(output.shape, dtype, 9)
    back = reference.stack_backward(grad, None, None, *arrays[:4], None, None, *arrays[4:])
    got = ops.recurrent_stack_backward(of_output.to(cuda), None, None, *tensors[:4], output, reserve, *tensors[4:])
    for one, want in zip(got, back, strict=True):
        assert_right(one, want, dtype)


def test_kept_bytes_are_good_for_two_times(cuda):
    _, tensors = arguments(STACKS[1], "lstm", "float32", cuda)
    with cudnn.flags(enabled=True, allow_tf32=False):
        output, h, c, reserve = ops.recurrent_stack_kept(*tensors)
        before = reserve.clone()
        first, second = (
            ops.recurrent_stack_backward(output, h, c, *tensors[:4], output, reserve, *tensors[4:]) for _ in range(2)
        )
    assert candelabra.equal(reserve, before)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other.cpu().numpy(), rtol=1e-6)


def test_gradients_without_what_was_kept(cuda):
    """Without cuDNN's reserve (cuDNN is turned off after the forward pass) the layers are run
    again.
    """
    _, tensors = arguments(STACKS[3], "gru", "float64", cuda)
    with cudnn.flags(enabled=True):
        output, h, _, reserve = ops.recurrent_stack_kept(*tensors)
        call = (None, h, None, *tensors[:4], output, reserve, *tensors[4:])
        wanted = ops.recurrent_stack_backward(*call)
    with cudnn.flags(enabled=False):
        got = ops.recurrent_stack_backward(*call)
    for one, other in zip(got, wanted, strict=True):
        assert_right(one, other.cpu().numpy(), "float64")


@pytest.mark.parametrize("cell", ["lstm", "rnn_relu"])
def test_weights_that_lie_apart(emulated, monkeypatch, cell):
    monkeypatch.setenv("CANDELABRA_EMULATION_CUDNN_GAPS", "1")
    stack = ((5,), 3, 6, 7, [3, 2], 2, 2, True)  # sizes of no other test: layouts are cached
    arrays, tensors = arguments(stack, cell, "float64", emulated)
    with cudnn.flags(enabled=True):
        output, _, _, reserve = ops.recurrent_stack_kept(*tensors)
        assert reserve.numel() > 0
        assert_right(output, reference.stack(*arrays)[0], "float64")
        back = reference.stack_backward(
            arrays[0][:, :1].repeat(14, 1), None, None, *arrays[:4], None, None, *arrays[4:]
        )
        grad = candelabra.tensor(arrays[0][:, :1].repeat(14, 1)).to(emulated)
        got = ops.recurrent_stack_backward(grad, None, None, *tensors[:4], output, reserve, *tensors[4:])
    for one, want in zip(got, back, strict=True):
        assert_right(one, want, "float64")


@pytest.mark.parametrize("shift", [1, 3])
def test_weights_that_are_not_aligned(cuda, shift):
    arrays, (x, weights, *rest) = arguments(STACKS[0], "gru", "float32", cuda)
    room = candelabra.zeros(len(weights) + shift, device=cuda)
    room[shift:] = weights
    with cudnn.flags(enabled=True, allow_tf32=False):
        assert_right(ops.recurrent_stack(x, room[shift:], *rest)[0], reference.stack(*arrays)[0], "float32")


# ---- when cuDNN is used


@pytest.fixture
def asked(emulated) -> Callable[[str], int]:
    """Return the emulated library's counters."""
    (path,) = [path for folder in candelabra_backend_cuda.library_folders() for path in folder.glob("libcudnn.so.*")]
    return lambda name: getattr(ctypes.CDLL(str(path)), f"emulated_recurrent_{name}")()


def test_switches(cuda, asked):
    _, tensors = arguments(STACKS[0], "lstm", "float32", cuda)
    before = asked("calls")
    for flags in ({"enabled": False}, {"enabled": True, "deterministic": True}):
        with cudnn.flags(**flags):
            ops.recurrent_stack(*tensors)
            assert ops.recurrent_stack_kept(*tensors)[3].numel() == 0
    candelabra.use_deterministic_algorithms(True)
    try:
        ops.recurrent_stack(*tensors)
    finally:
        candelabra.use_deterministic_algorithms(False)
    assert asked("calls") == before
    default, only_float32 = 0, 3  # of enum cudnnMathType_t
    for allow_tf32, math in ((True, default), (False, only_float32), (True, default)):
        with cudnn.flags(enabled=True, allow_tf32=allow_tf32):
            ops.recurrent_stack(*tensors)
        assert asked("math") == math
    assert asked("calls") == before + 3


def test_layers_that_cudnn_has_not(emulated, asked):
    """The emulated cuDNN does not support layers of a thousand units or more."""
    stack = ((2, 1), 1, 1, 1000, [], 1, 1, False)
    arrays, tensors = arguments(stack, "rnn_tanh", "float32", emulated)
    before = asked("calls")
    arrays, tensors = [[one[0], one[1] / 32, *one[2:]] for one in (arrays, tensors)]
    for _ in range(2):
        assert_right(ops.recurrent_stack(*tensors)[0], reference.stack(*arrays)[0], "float32")
    assert asked("calls") == before


def test_captured(cuda):
    """cuDNN reads lengths from host memory, which a graph must not: the backend's own kernels are
    captured.
    """
    arrays, tensors = arguments(STACKS[1], "gru", "float32", cuda)
    with cudnn.flags(enabled=True, allow_tf32=False):
        ops.recurrent_stack(*tensors)
        graph = candelabra.cuda.CUDAGraph()
        with candelabra.cuda.graph(graph):
            output, *_ = ops.recurrent_stack(*tensors)
    tensors[0].mul_(0.5)
    graph.replay()
    assert_right(output, reference.stack(arrays[0] / 2, *arrays[1:])[0], "float32")


def test_wrong_arguments(cuda):
    _, (x, weights, h, c, *rest) = arguments(STACKS[1], "lstm", "float32", cuda)
    with pytest.raises(RuntimeError, match=r"recurrent_stack\(\): expected weights of shape \[\d+\], but got \[3\]"):
        ops.recurrent_stack(x, weights[:3], h, c, *rest)
    with pytest.raises(RuntimeError, match=r"recurrent_stack\(\): shapes .* do not fit"):
        ops.recurrent_stack(x, weights, h[:1], c[:1], *rest)
    with pytest.raises(RuntimeError, match=r"recurrent_stack\(\): expected tensors of one dtype"):
        ops.recurrent_stack(x, weights.double(), h, c, *rest)
    with pytest.raises(RuntimeError, match=r"recurrent_stack_kept\(\): c0 is for the cell"):
        ops.recurrent_stack_kept(x, weights, h, None, *rest)
    with pytest.raises(RuntimeError, match=r"expected a reserve of bytes"):
        ops.recurrent_stack_backward(
            None, None, None, x, weights, h, c, ops.recurrent_stack(x, weights, h, c, *rest)[0], h, *rest
        )


# ---- layers of nn, and their gradients


@pytest.fixture
def nn():
    return pytest.importorskip("candelabra.nn")


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
def test_modules(cuda, way, nn, name, packed):
    pytest.importorskip("candelabra.autograd")
    pytest.importorskip("candelabra_backend_cpu")
    candelabra.manual_seed(0)
    net = getattr(nn, name)(3, 5, 2, bidirectional=True, batch_first=True, dtype=candelabra.float64)
    values = candelabra.randn(4, 6, 3, dtype=candelabra.float64)
    results = []
    for device in (candelabra.device("cpu"), cuda):
        net.to(device)
        net.zero_grad()
        x = values.detach().to(device).requires_grad_()
        given = (
            nn.utils.rnn.pack_padded_sequence(x, [2, 6, 3, 3], batch_first=True, enforce_sorted=False) if packed else x
        )
        output, states = net(given)
        output = output.data if packed else output
        loss = output.square().sum() + sum(state.sin().sum() for state in (states if name == "LSTM" else (states,)))
        loss.backward()
        # Moving a module moves the gradients that it has, so these are copies.
        results.append([output, x.grad, *(parameter.grad.clone() for parameter in net.parameters())])
    for want, got in zip(*results, strict=True):
        assert_right(got.detach(), want.detach().numpy(), "float64")


def test_one_call_for_all_layers(cuda, nn):
    profiler = pytest.importorskip("candelabra.profiler")

    def calls(net, x):
        with profiler.profile() as profile, candelabra.no_grad():
            net(x)
        names = [event.name for event in profile.events()]
        assert not {"sigmoid", "tanh", "mm", "addmm"} & set(names)
        return names.count("recurrent_stack")

    x = candelabra.ones(5, 2, 3, device=cuda)
    net = nn.GRU(3, 4, 3, dropout=0.5, bidirectional=True).to(cuda)
    with cudnn.flags(enabled=True):
        assert calls(net, x) == 3  # training has dropout between the layers
        assert calls(net.eval(), x) == 1


def test_dropout_between_layers(cuda, nn):
    """With a dropout of 1 after the first layer, only the biases of the second one have an
    effect.
    """
    candelabra.manual_seed(0)
    net = nn.LSTM(3, 4, 2, dropout=1.0).to(cuda)
    x, other = candelabra.randn(5, 2, 3, device=cuda), candelabra.randn(5, 2, 3, device=cuda)
    with cudnn.flags(enabled=True), candelabra.no_grad():
        (one, (h, _)), (two, (g, _)) = net(x), net(other)
    assert candelabra.equal(one, two) and candelabra.equal(h[1], g[1]) and not candelabra.equal(h[0], g[0])


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_autocast(cuda, way, nn, name):
    candelabra.manual_seed(0)
    net = getattr(nn, name)(3, 4).to(cuda)
    x = candelabra.randn(5, 2, 3, device=cuda)
    with candelabra.no_grad():
        wanted, _ = net(x)
        with candelabra.autocast("cuda", dtype=candelabra.bfloat16):
            got, _ = net(x)
    assert got.dtype == candelabra.bfloat16
    np.testing.assert_allclose(got.float().cpu().numpy(), wanted.cpu().numpy(), atol=0.03)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn_tanh"])
def test_derivatives(cuda, cell):
    autograd = pytest.importorskip("candelabra.autograd")
    _, tensors = arguments(((3,), 2, 1, 2, [2, 1], 1, 2, True), cell, "float64", cuda)
    count = 4 if cell == "lstm" else 3
    leaves = [tensor.requires_grad_() for tensor in tensors[:count]]

    def function(*given):
        full = (*given, None)[:4]
        return tuple(ops.recurrent_stack(*full, *tensors[4:])[: count - 1])

    with cudnn.flags(enabled=True):
        assert autograd.gradcheck(function, leaves)
        assert autograd.gradgradcheck(function, leaves, fast_mode=True)
