"""Test the modules RNN, GRU and LSTM against recurrences in NumPy."""

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy.special import expit

import candelabra
from candelabra import nn
from candelabra.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def step(kind, x, h, c, p):
    """Compute one step with the named parameters `p`. Return h and c."""
    from_x = p["weight_ih"] @ x + p.get("bias_ih", 0)
    from_h = p["weight_hh"] @ h + p.get("bias_hh", 0)
    if kind == "RNN":
        return np.tanh(from_x + from_h), None
    if kind == "GRU":
        (xr, xz, xn), (hr, hz, hn) = np.split(from_x, 3), np.split(from_h, 3)
        r, z = expit(xr + hr), expit(xz + hz)
        return (1 - z) * np.tanh(xn + r * hn) + z * h, None
    i, f, g, o = np.split(from_x + from_h, 4)
    c = expit(f) * c + expit(i) * np.tanh(g)
    h = expit(o) * np.tanh(c)
    return (p["weight_hr"] @ h if "weight_hr" in p else h), c


def reference(kind, net, x, h0, c0):
    """Compute the layers for one sequence (T, I). States are (layers * directions, H)."""
    state = {name: array(value) for name, value in net.state_dict().items()}
    hs, cs = [], []
    for layer in range(net.num_layers):
        outputs = []
        for direction, suffix in enumerate(("", "_reverse")[: 1 + net.bidirectional]):
            end = f"_l{layer}{suffix}"
            own = {name.removesuffix(end): value for name, value in state.items() if name.endswith(end)}
            at = len(hs)
            h, c, found = h0[at], None if c0 is None else c0[at], []
            for row in x[::-1] if direction else x:
                h, c = step(kind, row, h, c, own)
                found.append(h)
            outputs.append(found[::-1] if direction else found)
            hs.append(h)
            cs.append(c)
        x = np.concatenate(outputs, -1)
    return x, np.array(hs), None if c0 is None else np.array(cs)


def states_of(kind, hx):
    return (hx[0], hx[1]) if kind == "LSTM" else (hx, None)


CONFIGURATIONS = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"num_layers": 2, "bias": False, "batch_first": True},
    {"proj_size": 2, "num_layers": 2, "bidirectional": True},
]


@pytest.fixture(
    params=[(k, o) for k in GATES for o in range(4) if k == "LSTM" or o < 3], ids=lambda p: f"{p[0]}-{p[1]}"
)
def layers(request, rng):
    """Return the kind, module and initial states of a batch of three."""
    kind, number = request.param
    net = getattr(nn, kind)(4, 3, dtype=candelabra.float64, **CONFIGURATIONS[number])
    count = net.num_layers * (1 + net.bidirectional)
    h = rng.standard_normal((count, 3, net.proj_size or 3))
    c = rng.standard_normal((count, 3, 3)) if kind == "LSTM" else None
    return kind, net, h, c


def given(h, c, where=slice(None)):
    return tensor(h[:, where]) if c is None else (tensor(h[:, where]), tensor(c[:, where]))


def test_padded_and_unbatched(rng, layers):
    kind, net, h, c = layers
    x = rng.standard_normal((5, 3, 4))
    batch = x.swapaxes(0, 1) if net.batch_first else x
    output, final = net(tensor(batch), given(h, c))
    for n in range(3):
        expected = reference(kind, net, x[:, n], h[:, n], None if c is None else c[:, n])
        assert_close(output[n] if net.batch_first else output[:, n], expected[0])
        for ours, theirs in zip(states_of(kind, final), expected[1:], strict=True):
            if theirs is not None:
                assert_close(ours[:, n], theirs)
        # One sequence without a batch dimension, with and without initial states.
        alone, _ = net(tensor(x[:, n]), given(h, c, n))
        assert_close(alone, expected[0])
    zeros = reference(kind, net, x[:, 0], h[:, 0] * 0, None if c is None else c[:, 0] * 0)
    assert_close(net(tensor(x[:, 0]))[0], zeros[0])


@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed(rng, layers, enforce_sorted):
    kind, net, h, c = layers
    lengths = [5, 3, 1] if enforce_sorted else [3, 5, 1]
    x = rng.standard_normal((5, 3, 4))
    packed = pack_padded_sequence(tensor(x), lengths, enforce_sorted=enforce_sorted)
    output, final = net(packed, given(h, c))
    padded, found = pad_packed_sequence(output)
    assert found.tolist() == lengths
    for n, length in enumerate(lengths):
        expected = reference(kind, net, x[:length, n], h[:, n], None if c is None else c[:, n])
        assert_close(padded[:length, n], expected[0])
        assert not array(padded[length:, n]).any()
        for ours, theirs in zip(states_of(kind, final), expected[1:], strict=True):
            if theirs is not None:
                assert_close(ours[:, n], theirs)
    # Initial states default to zeros.
    start = reference(kind, net, x[: lengths[1], 1], h[:, 1] * 0, None if c is None else c[:, 1] * 0)
    assert_close(pad_packed_sequence(net(packed)[0])[0][: lengths[1], 1], start[0])


def test_relu_dropout_and_weight_lists():
    net = nn.RNN(2, 3, 2, "relu", dropout=0.999999)
    assert net.nonlinearity == "relu" and [len(group) for group in net.all_weights] == [4, 4]
    assert all(a is b for a, b in zip(net._flat_weights, net.parameters(), strict=True))
    net.flatten_parameters()
    x = candelabra.ones(3, 1, 2)
    # In training mode, dropout zeros the second layer's input, so its output does not depend on x.
    assert candelabra.equal(net(x)[0], net(x * 5)[0])
    assert not candelabra.equal(net.eval()(x)[0], net(x * 5)[0])
    bound = 1 / np.sqrt(3)
    assert all(float(p.abs().max()) <= bound for p in net.parameters())
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(2, 2, dropout=0.5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", GATES)
def test_cells(rng, kind, bias):
    cell = getattr(nn, f"{kind}Cell")(4, 3, bias=bias, dtype=candelabra.float64)
    own = {name: array(value) for name, value in cell.state_dict().items()}
    x, h, c = rng.standard_normal((2, 4)), rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    hx = (tensor(h), tensor(c)) if kind == "LSTM" else tensor(h)
    result = cell(tensor(x), hx)
    for n in range(2):
        expected = step(kind, x[n], h[n], c[n], own)
        assert_close(result[0][n] if kind == "LSTM" else result[n], expected[0])
        one = cell(tensor(x[n]), (tensor(h[n]), tensor(c[n])) if kind == "LSTM" else tensor(h[n]))
        assert_close(one[0] if kind == "LSTM" else one, expected[0])
        if kind == "LSTM":
            assert_close(result[1][n], expected[1])
    start = step(kind, x[0], h[0] * 0, c[0] * 0, own)[0]
    assert_close(cell(tensor(x[0]))[0] if kind == "LSTM" else cell(tensor(x[0])), start)
    if kind == "RNN":
        relu = nn.RNNCell(4, 3, bias, "relu", dtype=candelabra.float64)
        assert float(relu(tensor(x)).min()) >= 0
        relu.nonlinearity = "sin"
        with pytest.raises(RuntimeError, match="Unknown nonlinearity: sin"):
            relu(tensor(x))


x = candelabra.ones


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.LSTM(3, 2)(x(5, 2, 4)), RuntimeError, "input.size(-1) must be equal to input_size. Expected 3, got 4"),
        (lambda: nn.LSTM(3, 2)(x(2)), ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead"),
        (lambda: nn.RNN(3, 2)(x(2)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        (lambda: nn.GRU(3, 2)(x(5, 3), x(1, 1, 2)), RuntimeError, "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor"),
        (lambda: nn.GRU(3, 2)(x(5, 2, 3), x(1, 2)), RuntimeError, "For batched 3-D input, hx should also be 3-D but got 2-D tensor"),
        (lambda: nn.GRU(3, 2)(x(0, 2, 3)), RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
        (lambda: nn.GRU(3, 2)(x(5, 2, 3), x(1, 3, 2)), RuntimeError, "Expected hidden size (1, 2, 2), got [1, 3, 2]"),
        (lambda: nn.LSTM(3, 2)(x(5, 3), (x(1, 1, 2), x(1, 1, 2))), RuntimeError, "also be 2-D but got (3-D, 3-D) tensors"),
        (lambda: nn.LSTM(3, 2)(x(5, 1, 3), (x(1, 1, 2), x(1, 2, 2))), RuntimeError, "Expected hidden[1] size (1, 1, 2), got [1, 2, 2]"),
        (lambda: nn.GRU(3, 2)(x(5, 2, 3).double()), ValueError, "RNN input dtype (candelabra.float64) does not match weight dtype"),
        (lambda: nn.GRU(3, 2, proj_size=1), ValueError, "proj_size argument is only supported for LSTM, not RNN or GRU"),
        (lambda: nn.LSTM(3, 2, proj_size=2), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda: nn.LSTM(3, 2, proj_size=-1), ValueError, "proj_size should be a positive integer or zero"),
        (lambda: nn.LSTM(0, 2), ValueError, "input_size must be greater than zero"),
        (lambda: nn.LSTM(2, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: nn.LSTM(2.5, 1), TypeError, "input_size should be of type int, got: float"),
        (lambda: nn.LSTM(2, 1, 0), ValueError, "num_layers must be greater than zero"),
        (lambda: nn.LSTM(2, 1, dropout=2), ValueError, "dropout should be a number in range [0, 1]"),
        (lambda: nn.LSTM(2, 1, bias=1), TypeError, "bias should be of type bool, got: int"),
        (lambda: nn.RNN(2, 1, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'. Select from 'tanh' or 'relu'."),
        (lambda: nn.RNNBase("x", 2, 1), ValueError, "Unrecognized RNN mode: x"),
        (lambda: nn.LSTMCell(2, 1)(x(1, 1, 2)), ValueError, "LSTMCell: Expected input to be 1D or 2D, got 3D instead"),
        (lambda: nn.LSTMCell(2, 1)(x(1, 2), (x(1, 1), x(1, 1, 1))), ValueError, "Expected hx[1] to be 1D or 2D, got 3D instead"),
        (lambda: nn.GRUCell(2, 1)(x(1, 3)), RuntimeError, "input has inconsistent input_size: got 3 expected 2"),
        (lambda: nn.GRUCell(2, 1)(x(1, 2), x(1, 2)), RuntimeError, "hidden0 has inconsistent hidden_size: got 2, expected 1"),
    ],
)  # fmt: skip
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
@pytest.mark.parametrize(
    ("input", "state", "text"),
    [
        ((3, 5), (3, 4), "input has inconsistent input_size: got 5 expected 2"),
        ((3, 2), (1, 4), "Input batch size 3 doesn't match hidden0 batch size 1"),
        ((3, 2), (3, 1), "hidden0 has inconsistent hidden_size: got 1, expected 4"),
    ],
)
def test_cells_do_not_broadcast(kind, input, state, text):
    hx = candelabra.ones(state)
    with pytest.raises(RuntimeError, match=text):
        kind(2, 4)(candelabra.ones(input), (hx, hx) if kind is nn.LSTMCell else hx)
