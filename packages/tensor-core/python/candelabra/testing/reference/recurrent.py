"""References of recurrent layers: the steps one by one, and the gradient by the chain rule through them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra.testing.sampling import FLOATS, Input, Reference, Sample, numbers

Array = np.ndarray


def _sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def forward(gates: Array, h0: Array, c0: Array, weight: Array, reverse: bool) -> tuple[Array, Array, Array]:
    hidden = h0.shape[1]
    output, cells = np.empty((*gates.shape[:2], hidden)), np.empty((*gates.shape[:2], hidden))
    activations = np.empty(gates.shape)
    h, c = h0, c0
    for time in range(len(gates))[:: -1 if reverse else 1]:
        a = gates[time] + h @ weight.T
        a = np.concatenate([_sigmoid(a[:, : 2 * hidden]), np.tanh(a[:, 2 * hidden : 3 * hidden]), _sigmoid(a[:, 3 * hidden :])], 1)
        i, f, g, o = np.split(a, 4, 1)
        c = f * c + i * g
        h = o * np.tanh(c)
        output[time], cells[time], activations[time] = h, c, a
    return output, cells, activations


def backward(
    grad_output: Array | None,
    grad_cells: Array | None,
    grad_activations: Array | None,
    h0: Array,
    c0: Array,
    weight: Array,
    output: Array,
    cells: Array,
    activations: Array,
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    times = range(len(output))[:: -1 if reverse else 1]
    of_gates, of_weight = np.zeros(activations.shape), np.zeros(weight.shape)
    dh, dc = np.zeros(h0.shape), np.zeros(h0.shape)
    for step in range(len(times))[::-1]:
        time = times[step]
        h_before, c_before = (output[times[step - 1]], cells[times[step - 1]]) if step else (h0, c0)
        i, f, g, o = np.split(activations[time], 4, 1)
        dh = dh + (0 if grad_output is None else grad_output[time])
        dc = dc + (0 if grad_cells is None else grad_cells[time])
        t = np.tanh(cells[time])
        dc = dc + dh * o * (1 - t**2)
        slopes = np.concatenate([dc * g, dc * c_before, dc * i, dh * t], 1)
        if grad_activations is not None:
            slopes = slopes + grad_activations[time]
        d = slopes * np.concatenate([i * (1 - i), f * (1 - f), 1 - g**2, o * (1 - o)], 1)
        of_gates[time] = d
        of_weight += d.T @ h_before
        dh, dc = d @ weight, dc * f
    return of_gates, dh, dc, of_weight


#: Steps, batch, hidden size.
_SIZES = ((3, 2, 4), (1, 1, 1), (5, 33, 9), (2, 17, 16), (0, 2, 3), (3, 0, 3))


def _forwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for steps, batch, hidden in _SIZES:
        for layout, reverse in (("contiguous", False), ("strided", True)):
            yield Sample((
                Input(numbers(rng, dtype, (steps, batch, 4 * hidden), -2, 2), dtype, layout),
                Input(numbers(rng, dtype, (batch, hidden), -1, 1), dtype, layout),
                Input(numbers(rng, dtype, (batch, hidden), -1, 1), dtype, layout),
                Input(numbers(rng, dtype, (4 * hidden, hidden), -0.5, 0.5), dtype, layout),
                reverse,
            ))  # fmt: skip


def _backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for number, sample in enumerate(_forwards(rng, dtype)):
        gates, h0, c0, weight, reverse = sample.arguments
        made = forward(gates.values, h0.values, c0.values, weight.values, reverse)
        grads = [Input(numbers(rng, dtype, one.shape, -1, 1), dtype) if number % 4 != i else None for i, one in enumerate(made)]
        yield Sample((*grads, h0, c0, weight, *(Input(one, dtype) for one in made), reverse))


REFERENCES: dict[str, Reference] = {
    "lstm_sequence": Reference(forward, _forwards, FLOATS, 50),
    "lstm_sequence_backward": Reference(backward, _backwards, ("float32", "float64"), 200),
}
