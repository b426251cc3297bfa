"""Test functional recurrent layers against NumPy, step by step."""

import numpy as np
import pytest
from nn_numerics import assert_close, tensor
from scipy.special import expit

import candelabra

KINDS = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


def step(name, x, states, w_ih, w_hh, b_ih, b_hh):
    from_x, from_h = x @ w_ih.T + b_ih, states[0] @ w_hh.T + b_hh
    if name == "rnn_tanh":
        return [np.tanh(from_x + from_h)]
    if name == "rnn_relu":
        return [np.maximum(from_x + from_h, 0)]
    if name == "gru":
        (xr, xz, xn), (hr, hz, hn) = np.split(from_x, 3, -1), np.split(from_h, 3, -1)
        r, z = expit(xr + hr), expit(xz + hz)
        return [(1 - z) * np.tanh(xn + r * hn) + z * states[0]]
    i, f, g, o = np.split(from_x + from_h, 4, -1)
    c = expit(f) * states[1] + expit(i) * np.tanh(g)
    return [expit(o) * np.tanh(c), c]


def run(name, x, initial, params, layers, directions):
    """Run sequences (T, I) one at a time. Initial states are lists of (layers * directions, H)."""
    finals = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            states, found = [s[at] for s in initial], []
            for row in x[::-1] if direction else x:
                states = step(name, row, states, *params[4 * at : 4 * at + 4])
                found.append(states[0])
            outputs.append(np.array(found[::-1] if direction else found))
            finals.append(states)
        x = np.concatenate(outputs, -1)
    return x, [np.array(s) for s in zip(*finals, strict=True)]


@pytest.fixture(params=sorted(KINDS))
def net(request, rng):
    """Return the name, parameters, initial states and `hx` argument of two bidirectional layers."""
    name, gates, hidden = request.param, KINDS[request.param], 3
    params = []
    for layer in range(2):
        for _ in range(2):
            width = 4 if layer == 0 else 2 * hidden
            params += [
                rng.standard_normal(shape)
                for shape in ((gates * hidden, width), (gates * hidden, hidden), gates * hidden, gates * hidden)
            ]
    initial = [rng.standard_normal((4, 3, hidden)) for _ in range(2 if name == "lstm" else 1)]
    hx = [tensor(s) for s in initial] if name == "lstm" else tensor(initial[0])
    return name, params, initial, hx


def test_padded(rng, net):
    name, params, initial, hx = net
    x = rng.standard_normal((5, 3, 4))
    function, weights = getattr(candelabra, name), [tensor(p) for p in params]
    output, *finals = function(tensor(x), hx, weights, True, 2, 0.0, False, True, False)
    first, *_ = function(tensor(x.swapaxes(0, 1)), hx, weights, True, 2, 0.0, False, True, True)
    assert_close(first.transpose(0, 1).contiguous(), output.numpy())
    for n in range(3):
        expected, states = run(name, x[:, n], [s[:, n] for s in initial], params, 2, 2)
        assert_close(output[:, n], expected)
        for final, state in zip(finals, states, strict=True):
            assert_close(final[:, n], state)


def test_packed(rng, net):
    name, params, initial, hx = net
    sequences = [rng.standard_normal((length, 4)) for length in (4, 3, 1)]
    batch_sizes = [3, 2, 2, 1]
    data = np.array([sequences[n][t] for t, batch in enumerate(batch_sizes) for n in range(batch)])
    function, weights = getattr(candelabra, name), [tensor(p) for p in params]
    output, *finals = function(tensor(data), candelabra.tensor(batch_sizes), hx, weights, True, 2, 0.0, False, True)
    starts = np.cumsum([0, *batch_sizes])
    for n, sequence in enumerate(sequences):
        expected, states = run(name, sequence, [s[:, n] for s in initial], params, 2, 2)
        assert_close(output[[int(starts[t]) + n for t in range(len(sequence))]], expected)
        for final, state in zip(finals, states, strict=True):
            assert_close(final[:, n], state)
    named = function(
        data=tensor(data), batch_sizes=candelabra.tensor(batch_sizes), hx=hx, params=weights, has_biases=True, num_layers=2,
        dropout=0.0, train=False, bidirectional=True,
    )  # fmt: skip
    assert named[0].tolist() == output.tolist()


def test_cells(rng, net):
    name, params, initial, _ = net
    x, states = rng.standard_normal((3, 4)), [s[0] for s in initial]
    function = getattr(candelabra, f"{name}_cell")
    hx = [tensor(s) for s in states] if name == "lstm" else tensor(states[0])
    made = function(tensor(x), hx, *(tensor(p) for p in params[:4]))
    for one, expected in zip(made if name == "lstm" else [made], step(name, x, states, *params[:4]), strict=True):
        assert_close(one, expected)
    bare = function(tensor(x), hx, tensor(params[0]), tensor(params[1]))
    zero = np.zeros_like(params[2])
    assert_close(bare[0] if name == "lstm" else bare, step(name, x, states, *params[:2], zero, zero)[0])


def test_projection(rng):
    params = [rng.standard_normal(shape) for shape in ((12, 4), (12, 2), (2, 3))]
    x, h, c = rng.standard_normal((3, 2, 4)), rng.standard_normal((1, 2, 2)), rng.standard_normal((1, 2, 3))
    output, h_n, c_n = candelabra.lstm(
        tensor(x), (tensor(h), tensor(c)), [tensor(p) for p in params], False, 1, 0.0, False, False, False
    )
    states, zero = [h[0], c[0]], np.zeros(12)
    for t in range(3):
        inner, cell = step("lstm", x[t], states, *params[:2], zero, zero)
        states = [inner @ params[2].T, cell]
        assert_close(output[t], states[0])
    assert_close(h_n[0], states[0])
    assert_close(c_n[0], states[1])


def test_dropout_between_layers(rng):
    params = [tensor(rng.standard_normal(shape)) for shape in ((9, 2), (9, 3), (9, 3), (9, 3))]
    x, h = tensor(rng.standard_normal((2, 1, 2))), tensor(rng.standard_normal((2, 1, 3)))
    dropped = candelabra.gru(x, h, params, False, 2, 1.0, True, False, False)[0]
    kept = candelabra.gru(x, h, params, False, 2, 1.0, False, False, False)[0]
    assert not candelabra.allclose(dropped, kept)
    assert candelabra.allclose(kept, candelabra.gru(x, h, params, False, 2, 0.0, True, False, False)[0])
    # With a dropout probability of 1, the result is that of the second layer on zeros.
    first = candelabra.gru(x * 0, h[1:], [params[2][:, :2] * 0, params[3]], False, 1, 0.0, False, False, False)[0]
    assert_close(dropped, first.numpy())


def test_errors():
    x, h = candelabra.ones(2, 1, 4), candelabra.ones(1, 1, 3)
    w = [candelabra.ones(3, 4), candelabra.ones(3, 3)]
    rest = (1, 0.0, False, False, False)
    for match, call in (
        ("expected 2 parameters", lambda: candelabra.rnn_tanh(x, h, [*w, *w], False, *rest)),
        ("input.size", lambda: candelabra.rnn_tanh(x[..., :2], h, w, False, *rest)),
        ("batch of 1", lambda: candelabra.rnn_tanh(x, candelabra.ones(1, 2, 3), w, False, *rest)),
        ("layers and directions", lambda: candelabra.rnn_tanh(x, candelabra.ones(2, 1, 3), w, False, *rest)),
        ("size 3", lambda: candelabra.rnn_tanh(x, candelabra.ones(1, 1, 5), w, False, *rest)),
        ("same dtype", lambda: candelabra.rnn_tanh(x, h.double(), w, False, *rest)),
        ("three dimensions", lambda: candelabra.rnn_tanh(x[0], h, w, False, *rest)),
        ("two hidden states", lambda: candelabra.lstm(x, [h], w, False, *rest)),
        (
            "must add up",
            lambda: candelabra.rnn_tanh(x[:, 0], candelabra.tensor([1, 2]), h, w, False, 1, 0.0, False, False),
        ),
        ("inconsistent input_size", lambda: candelabra.rnn_tanh_cell(x[0], h[0], w[1], w[1])),
        ("doesn't match hidden0", lambda: candelabra.rnn_tanh_cell(x[:, 0], h[0], *w)),
    ):
        with pytest.raises(RuntimeError, match=match):
            call()
    with pytest.raises(TypeError, match="takes the arguments"):
        candelabra.rnn_tanh(x, h, w)
