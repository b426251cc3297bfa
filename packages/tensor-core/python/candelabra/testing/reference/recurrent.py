"""References of recurrent layers: a loop over time steps, and the gradient by the chain rule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

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
        a = np.concatenate(
            [_sigmoid(a[:, : 2 * hidden]), np.tanh(a[:, 2 * hidden : 3 * hidden]), _sigmoid(a[:, 3 * hidden :])], 1
        )
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


# ---- any cell, one sequence of the batch after the other

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _rows_of(batch: int, steps: int, batch_sizes: list[int], reverse: bool) -> Iterator[list[int]]:
    """Return the rows of each sequence in tensors over time, in order."""
    sizes = batch_sizes or [batch] * steps
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    for sequence in range(batch):
        rows = [int(start) + sequence for start, size in zip(starts, sizes, strict=False) if sequence < size]
        yield rows[::-1] if reverse else rows


def _step(
    cell: str, x: Array, h: Array, c: Array | None, weight: Array, bias: Array | None
) -> tuple[Array, Array | None, Array]:
    y = weight @ h + (0 if bias is None else bias)
    if cell == "lstm":
        i, f, g, o = np.split(x + y, 4)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        c = f * c + i * g
        return o * np.tanh(c), c, np.concatenate([i, f, g, o])
    if cell == "gru":
        (xr, xz, xn), (yr, yz, yn) = np.split(x, 3), np.split(y, 3)
        r, z = _sigmoid(xr + yr), _sigmoid(xz + yz)
        n = np.tanh(xn + r * yn)
        return (1 - z) * n + z * h, None, np.concatenate([r, z, n, yn])
    return (np.tanh(x + y) if cell == "rnn_tanh" else np.maximum(x + y, 0)), None, np.empty(0)


def sequence(
    gates: Array,
    h0: Array,
    c0: Array | None,
    weight: Array,
    bias: Array | None,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> tuple[Array, Array, Array]:
    batch, hidden = h0.shape
    flat = gates.reshape(math.prod(gates.shape[:-1]), gates.shape[-1])
    kept = 4 * hidden if cell in ("lstm", "gru") else 0
    output, cells, activations = (
        np.empty((len(flat), hidden)),
        np.empty((len(flat), hidden)),
        np.empty((len(flat), kept)),
    )
    for number, rows in enumerate(_rows_of(batch, len(gates), batch_sizes, reverse)):
        h, c = h0[number], None if c0 is None else c0[number]
        for row in rows:
            h, c, activations[row] = _step(cell, flat[row], h, c, weight, bias)
            output[row] = h
            if c is not None:
                cells[row] = c
    over_time = gates.shape[:-1]
    nothing = np.empty(0)
    return (
        output.reshape(*over_time, hidden),
        cells.reshape(*over_time, hidden) if c0 is not None else nothing,
        activations.reshape(*over_time, kept) if kept else nothing,
    )


def states(
    gates: Array,
    h0: Array,
    c0: Array | None,
    weight: Array,
    bias: Array | None,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> tuple[Array, Array]:
    output, cells, _ = sequence(gates, h0, c0, weight, bias, batch_sizes, reverse, cell)
    if c0 is None:
        return output, np.empty(0)
    last = c0.copy()
    flat = cells.reshape(math.prod(cells.shape[:-1]), h0.shape[1])
    for number, rows in enumerate(_rows_of(len(h0), len(gates), batch_sizes, reverse)):
        if rows:
            last[number] = flat[rows[-1]]
    return output, last


def layer(input: Array, input_weight: Array, input_bias: Array | None, *rest: Any) -> tuple[Array, Array, Array]:
    return sequence(input @ input_weight.T + (0 if input_bias is None else input_bias), *rest)


def layer_states(input: Array, input_weight: Array, input_bias: Array | None, *rest: Any) -> tuple[Array, Array]:
    return states(input @ input_weight.T + (0 if input_bias is None else input_bias), *rest)


def sequence_backward(
    grad_output: Array | None,
    grad_cells: Array | None,
    grad_activations: Array | None,
    h0: Array,
    c0: Array | None,
    weight: Array,
    output: Array,
    cells: Array,
    activations: Array,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> tuple[Array, Array, Array, Array]:
    hidden, width = h0.shape[1], weight.shape[0]
    count = math.prod(output.shape[:-1])
    flat = output.reshape(count, hidden)
    of_output = np.zeros_like(flat) if grad_output is None else grad_output.reshape(count, hidden)
    of_cells = np.zeros_like(flat) if grad_cells is None or c0 is None else grad_cells.reshape(count, hidden)
    kept = activations.reshape(count, 4 * hidden if cell in ("lstm", "gru") else 0)
    of_kept = np.zeros_like(kept) if grad_activations is None else grad_activations.reshape(kept.shape)
    flat_cells = cells.reshape(count, hidden) if c0 is not None else flat
    of_gates, of_h0, of_c0 = np.zeros((len(flat), width)), np.zeros(h0.shape), np.zeros(h0.shape)
    of_weight, of_bias = np.zeros(weight.shape), np.zeros(width)
    for number, rows in enumerate(_rows_of(len(h0), len(output), batch_sizes, reverse)):
        dh, dc = np.zeros(hidden), np.zeros(hidden)
        for step in range(len(rows))[::-1]:
            row = rows[step]
            before = flat[rows[step - 1]] if step else h0[number]
            dh = dh + of_output[row]
            passed: Array | float = 0.0
            if cell == "lstm" and c0 is not None:
                i, f, g, o = np.split(kept[row], 4)
                ei, ef, eg, eo = np.split(of_kept[row], 4)
                t = np.tanh(flat_cells[row])
                c_before = flat_cells[rows[step - 1]] if step else c0[number]
                dc = dc + of_cells[row] + dh * o * (1 - t**2)
                slopes = [(dc * g + ei) * i * (1 - i), (dc * c_before + ef) * f * (1 - f)]
                slopes += [(dc * i + eg) * (1 - g**2), (dh * t + eo) * o * (1 - o)]
                of_input = of_state = np.concatenate(slopes)
                dc = dc * f
            elif cell == "gru":
                r, z, n, m = np.split(kept[row], 4)
                er, ez, en, em = np.split(of_kept[row], 4)
                dn = (dh * (1 - z) + en) * (1 - n**2)
                dr, dz = (dn * m + er) * r * (1 - r), (dh * (before - n) + ez) * z * (1 - z)
                of_input, of_state, passed = np.concatenate([dr, dz, dn]), np.concatenate([dr, dz, dn * r + em]), dh * z
            else:
                of_input = of_state = dh * (1 - flat[row] ** 2) if cell == "rnn_tanh" else dh * (flat[row] > 0)
            of_gates[row] = of_input
            of_weight += np.outer(of_state, before)
            of_bias += of_state
            dh = of_state @ weight + passed
        of_h0[number], of_c0[number] = dh, dc
    third = of_c0 if cell == "lstm" else of_bias if cell == "gru" else np.empty(0)
    return of_gates.reshape(*output.shape[:-1], width), of_h0, third, of_weight


# ---- stacks of layers, with all weights in one array


def _parts(
    weights: Array, input_size: int, hidden: int, layers: int, directions: int, has_biases: bool, cell: str
) -> list[list[Array]]:
    """Return the two matrices and two biases of each direction of each layer; missing biases are
    zero.
    """
    gates, count = _GATES[cell] * hidden, layers * directions
    shapes: list[tuple[int, ...]] = [
        (gates, width)
        for at in range(count)
        for width in (input_size if at < directions else directions * hidden, hidden)
    ]
    shapes += [(gates,)] * (2 * count if has_biases else 0)
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    arrays = [part.reshape(shape) for part, shape in zip(np.split(weights, ends), shapes, strict=True)]
    biases = arrays[2 * count :] or [np.zeros(gates)] * 2 * count
    return [[*arrays[2 * at : 2 * at + 2], *biases[2 * at : 2 * at + 2]] for at in range(count)]


def _run_stack(
    input: Array, weights: Array, h0: Array, c0: Array | None, batch_sizes: list[int], layers: int, bidirectional: bool,
    has_biases: bool, cell: str,
) -> tuple[list[Array], list[tuple[Any, ...]]]:  # fmt: skip
    """Run the layers. Return the input of each, the output of the last, and the result of
    `sequence` for each direction.
    """
    directions = 2 if bidirectional else 1
    inputs, runs = [input], []
    for at, (w_ih, w_hh, b_ih, b_hh) in enumerate(
        _parts(weights, input.shape[-1], h0.shape[2], layers, directions, has_biases, cell)
    ):
        gates = inputs[-1] @ w_ih.T + b_ih
        own = b_hh if cell == "gru" else None
        first_c = None if c0 is None else c0[at]
        runs.append(
            sequence(
                gates if cell == "gru" else gates + b_hh,
                h0[at],
                first_c,
                w_hh,
                own,
                batch_sizes,
                at % directions == 1,
                cell,
            )
        )
        if len(runs) % directions == 0:
            inputs.append(np.concatenate([run[0] for run in runs[-directions:]], -1))
    return inputs, runs


def _last_rows(batch: int, steps: int, batch_sizes: list[int], reverse: bool) -> list[int | None]:
    return [rows[-1] if rows else None for rows in _rows_of(batch, steps, batch_sizes, reverse)]


def stack(
    input: Array, weights: Array, h0: Array, c0: Array | None, batch_sizes: list[int], *rest: Any
) -> tuple[Array, Array, Array]:
    inputs, runs = _run_stack(input, weights, h0, c0, batch_sizes, *rest)
    last_h, last_c = h0.copy(), np.empty(0) if c0 is None else c0.copy()
    for at, (output, cells, _) in enumerate(runs):
        for number, row in enumerate(_last_rows(h0.shape[1], len(input), batch_sizes, rest[1] and at % 2 == 1)):
            if row is not None:
                last_h[at, number] = output.reshape(-1, h0.shape[2])[row]
                if c0 is not None:
                    last_c[at, number] = cells.reshape(-1, h0.shape[2])[row]
    return inputs[-1], last_h, last_c


def stack_kept(*arguments: Any) -> tuple[Array | None, ...]:
    return *stack(*arguments), None  # the reserve is private to the backend


def stack_backward(
    grad_output: Array | None, grad_h: Array | None, grad_c: Array | None, input: Array, weights: Array, h0: Array, c0: Array | None,
    output: Array, reserve: Array, batch_sizes: list[int], layers: int, bidirectional: bool, has_biases: bool, cell: str,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    directions, (_, batch, hidden) = 2 if bidirectional else 1, h0.shape
    inputs, runs = _run_stack(input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell)
    parts = _parts(weights, input.shape[-1], hidden, layers, directions, has_biases, cell)
    of_h0, of_c0 = np.zeros(h0.shape), np.zeros(h0.shape)
    matrices: list[list[Array]] = [[]] * len(parts)
    biases: list[list[Array]] = [[]] * len(parts)
    of_above = np.zeros(inputs[-1].shape) if grad_output is None else grad_output
    for layer in reversed(range(layers)):
        of_input = np.zeros(inputs[layer].shape)
        for direction in range(directions):
            at = layer * directions + direction
            (own, cells, kept), reverse = runs[at], direction == 1
            of_output = of_above[..., direction * hidden : (direction + 1) * hidden].copy()
            of_cells = np.zeros(of_output.shape)
            for number, row in enumerate(_last_rows(batch, len(input), batch_sizes, reverse)):
                for given, rows, first in ((grad_h, of_output, of_h0), (grad_c, of_cells, of_c0)):
                    if given is None:
                        continue
                    if row is None:
                        first[at, number] += given[at, number]
                    else:
                        rows.reshape(-1, hidden)[row] += given[at, number]
            w_ih, w_hh = parts[at][:2]
            first_c = None if c0 is None else c0[at]
            of_gates, of_h, third, of_w_hh = sequence_backward(
                of_output, of_cells, None, h0[at], first_c, w_hh, own, cells, kept, batch_sizes, reverse, cell
            )
            of_h0[at] += of_h
            if c0 is not None:
                of_c0[at] += third
            rows = of_gates.reshape(math.prod(of_gates.shape[:-1]), of_gates.shape[-1])
            matrices[at] = [rows.T @ inputs[layer].reshape(len(rows), inputs[layer].shape[-1]), of_w_hh]
            biases[at] = [rows.sum(0), third if cell == "gru" else rows.sum(0)] if has_biases else []
            of_input = of_input + of_gates @ w_ih
        of_above = of_input
    of_weights = np.concatenate([part.ravel() for pairs in (matrices, biases) for pair in pairs for part in pair])
    return of_above, of_weights, of_h0, of_c0 if c0 is not None else np.empty(0)


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
        grads = [
            Input(numbers(rng, dtype, one.shape, -1, 1), dtype) if number % 4 != i else None
            for i, one in enumerate(made)
        ]
        yield Sample((*grads, h0, c0, weight, *(Input(one, dtype) for one in made), reverse))


#: Hidden size and rows per step of packed sequences.
_PACKED = ((4, (5, 3, 3, 1)), (9, (20, 18, 7, 7, 2)), (33, (2,)))


def _sequences(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    shapes: list[tuple[tuple[int, ...], int, int, list[int]]] = [
        ((steps, batch), batch, hidden, []) for steps, batch, hidden in _SIZES
    ]
    shapes += [((sum(sizes),), sizes[0], hidden, list(sizes)) for hidden, sizes in _PACKED]
    for over_time, batch, hidden, batch_sizes in shapes:
        for number, (cell, gates) in enumerate(_GATES.items()):
            layout = "strided" if number % 2 else "contiguous"
            bias = (
                Input(numbers(rng, dtype, (gates * hidden,), -1, 1), dtype, layout)
                if cell == "gru" and batch != 1
                else None
            )
            yield Sample((
                Input(numbers(rng, dtype, (*over_time, gates * hidden), -2, 2), dtype, layout),
                Input(numbers(rng, dtype, (batch, hidden), -1, 1), dtype, layout),
                Input(numbers(rng, dtype, (batch, hidden), -1, 1), dtype, layout) if cell == "lstm" else None,
                Input(numbers(rng, dtype, (gates * hidden, hidden), -0.5, 0.5) / hidden**0.5, dtype, layout),
                bias, batch_sizes, number > 1, cell,
            ))  # fmt: skip


def _layers(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for number, sample in enumerate(_sequences(rng, dtype)):
        gates, *rest = sample.arguments
        *over_time, width = gates.values.shape
        size = (3, 1, 18)[number % 3]
        yield Sample((
            Input(numbers(rng, dtype, (*over_time, size), -1, 1), dtype, gates.layout),
            Input(numbers(rng, dtype, (width, size), -1, 1), dtype, gates.layout),
            Input(numbers(rng, dtype, (width,), -1, 1), dtype) if number % 2 else None, *rest,
        ))  # fmt: skip


def _sequences_backward(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for number, sample in enumerate(_sequences(rng, dtype)):
        gates, h0, c0, weight, bias, batch_sizes, reverse, cell = sample.arguments
        first = None if c0 is None else c0.values
        made = sequence(
            gates.values,
            h0.values,
            first,
            weight.values,
            None if bias is None else bias.values,
            batch_sizes,
            reverse,
            cell,
        )
        grads = [
            Input(numbers(rng, dtype, one.shape, -1, 1), dtype) if number % 4 != i else None
            for i, one in enumerate(made)
        ]
        yield Sample((*grads, h0, c0, weight, *(Input(one, dtype) for one in made), batch_sizes, reverse, cell))


def _stacks(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    shapes: list[tuple[tuple[int, ...], int, int, list[int]]] = [
        ((steps, batch), batch, hidden, [])
        for steps, batch, hidden in ((3, 2, 4), (1, 1, 1), (5, 9, 17), (0, 2, 3), (3, 0, 3))
    ]
    shapes += [((sum(sizes),), sizes[0], hidden, list(sizes)) for hidden, sizes in _PACKED[:2]]
    for over_time, batch, hidden, batch_sizes in shapes:
        for number, (cell, gates) in enumerate(_GATES.items()):
            layers, directions, biases = 1 + (number + batch) % 2, 1 + number % 2, 2 * ((number + hidden) % 2)
            size, layout = (3, 1, 12)[number % 3], "strided" if number % 2 else "contiguous"
            count = (
                directions
                * gates
                * hidden
                * (size + hidden + biases + (layers - 1) * (directions * hidden + hidden + biases))
            )
            first = (layers * directions, batch, hidden)
            yield Sample((
                Input(numbers(rng, dtype, (*over_time, size), -1, 1), dtype, layout),
                Input(numbers(rng, dtype, (count,), -1, 1) / hidden**0.5, dtype, layout),
                Input(numbers(rng, dtype, first, -1, 1), dtype, layout),
                Input(numbers(rng, dtype, first, -1, 1), dtype, layout) if cell == "lstm" else None,
                batch_sizes, layers, directions == 2, biases > 0, cell,
            ))  # fmt: skip


def _stacks_backward(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for number, sample in enumerate(_stacks(rng, dtype)):
        input, weights, h0, c0, *rest = sample.arguments
        made = stack(input.values, weights.values, h0.values, None if c0 is None else c0.values, *rest)
        grads = [
            Input(numbers(rng, dtype, one.shape, -1, 1), dtype)
            if number % 4 != i and (i < 2 or c0 is not None)
            else None
            for i, one in enumerate(made)
        ]
        nothing = Input(np.empty(0, np.uint8), "uint8")
        yield Sample((*grads, input, weights, h0, c0, Input(made[0], dtype), nothing, *rest))


REFERENCES: dict[str, Reference] = {
    "lstm_sequence": Reference(forward, _forwards, FLOATS, 50),
    "lstm_sequence_backward": Reference(backward, _backwards, ("float32", "float64"), 200),
    "recurrent_sequence": Reference(sequence, _sequences, FLOATS, 50),
    "recurrent_states": Reference(states, _sequences, FLOATS, 50),
    "recurrent_layer": Reference(layer, _layers, FLOATS, 100),
    "recurrent_layer_states": Reference(layer_states, _layers, FLOATS, 100),
    "recurrent_sequence_backward": Reference(sequence_backward, _sequences_backward, ("float32", "float64"), 200),
    "recurrent_stack": Reference(stack, _stacks, FLOATS, 200),
    "recurrent_stack_kept": Reference(stack_kept, _stacks, FLOATS, 200),
    "recurrent_stack_backward": Reference(stack_backward, _stacks_backward, ("float32", "float64"), 400),
}
