"""Decompositions of recurrent layers and their gradients, step by step."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_select = OPERATORS["select"]
_narrow = OPERATORS["narrow"]
_cat = OPERATORS["cat"]


def _stacked(parts: list[Tensor], reverse: bool, like: Tensor, width: int) -> Any:
    """Stack the results of steps in the order of time."""
    if not parts:
        return OPERATORS["empty"]((0, like.shape[0], width), dtype=like.dtype, device=like.device)
    return _cat([OPERATORS["unsqueeze"](part, 0) for part in (parts[::-1] if reverse else parts)], 0)


def _parts(x: Tensor, hidden: int) -> list[Any]:
    return [OPERATORS["narrow"](x, -1, gate * hidden, hidden) for gate in range(4)]


@decomposes("lstm_sequence")
def lstm_sequence(gates: Tensor, h0: Tensor, c0: Tensor, weight: Tensor, reverse: bool) -> Any:
    steps, hidden = gates.shape[0], h0.shape[1]
    dtype = gates.dtype
    gates, h, c, transposed_weight = wide(gates), wide(h0), wide(c0), OPERATORS["transpose"](wide(weight), 0, 1)
    outputs, cells, activations = [], [], []
    for time in reversed(range(steps)) if reverse else range(steps):
        i, f, g, o = _parts(_select(gates, 0, time) + h @ transposed_weight, hidden)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        h = o * c.tanh()
        outputs.append(h)
        cells.append(c)
        activations.append(_cat([i, f, g, o], -1))
    made = ((outputs, hidden), (cells, hidden), (activations, 4 * hidden))
    return tuple(narrow_to(_stacked(parts, reverse, h, width), dtype) for parts, width in made)


@decomposes("lstm_sequence_backward")
def lstm_sequence_backward(
    grad_output: Tensor | None,
    grad_cells: Tensor | None,
    grad_activations: Tensor | None,
    h0: Tensor,
    c0: Tensor,
    weight: Tensor,
    output: Tensor,
    cells: Tensor,
    activations: Tensor,
    reverse: bool,
) -> Any:
    steps, hidden = output.shape[0], h0.shape[1]
    dtype = output.dtype
    zeros = OPERATORS["mul"](wide(h0), 0)
    dh, dc, of_weight = zeros, zeros, OPERATORS["mul"](wide(weight), 0)
    of_gates = []
    times = list(reversed(range(steps)) if reverse else range(steps))
    for step in reversed(range(steps)):
        time = times[step]
        c_before = wide(_select(cells, 0, times[step - 1]) if step else c0)
        h_before = wide(_select(output, 0, times[step - 1]) if step else h0)
        i, f, g, o = _parts(wide(_select(activations, 0, time)), hidden)
        t = wide(_select(cells, 0, time)).tanh()
        if grad_output is not None:
            dh = dh + wide(_select(grad_output, 0, time))
        if grad_cells is not None:
            dc = dc + wide(_select(grad_cells, 0, time))
        dc = dc + dh * o * (1 - t * t)
        slopes = [dc * g, dc * c_before, dc * i, dh * t]
        if grad_activations is not None:
            extra = _parts(wide(_select(grad_activations, 0, time)), hidden)
            slopes = [slope + more for slope, more in zip(slopes, extra)]
        di, df, dg, do = slopes
        d = _cat([di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], -1)
        of_gates.append(d)
        of_weight = of_weight + OPERATORS["transpose"](d, 0, 1) @ h_before
        dh, dc = d @ wide(weight), dc * f
    of_gates = _stacked(of_gates[::-1], reverse, zeros, 4 * hidden)
    return tuple(narrow_to(made, dtype) for made in (of_gates, dh, dc, of_weight))


# ---- any cell, for padded and packed sequences


def _empty(like: Tensor) -> Any:
    return OPERATORS["empty"]((0,), dtype=like.dtype, device=like.device)


def _step(
    cell: str, given: Tensor, h: Tensor, c: Any, transposed_weight: Tensor, bias: Tensor | None
) -> tuple[Any, Any, Any]:
    """Compute one step for some rows: the new state, the cell state, and the values saved for the
    gradient.
    """
    sums = h @ transposed_weight
    hidden = h.shape[1]
    if cell == "lstm":
        i, f, g, o = _parts(given + sums, hidden)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        return o * c.tanh(), c, _cat([i, f, g, o], -1)
    if cell == "gru":
        if bias is not None:
            sums = sums + bias
        r = (_narrow(given, -1, 0, hidden) + _narrow(sums, -1, 0, hidden)).sigmoid()
        z = (_narrow(given, -1, hidden, hidden) + _narrow(sums, -1, hidden, hidden)).sigmoid()
        m = _narrow(sums, -1, 2 * hidden, hidden)
        n = (_narrow(given, -1, 2 * hidden, hidden) + r * m).tanh()
        return n + z * (h - n), None, _cat([r, z, n, m], -1)
    return ((given + sums).tanh() if cell == "rnn_tanh" else (given + sums).relu()), None, None


def _step_back(
    cell: str, kept: Any, more: Any, h_before: Tensor, c_before: Any, h: Tensor, c: Any, dh: Tensor, dc: Any
) -> tuple[Any, Any, Any, Any]:
    """Compute the gradients of the gates (from input and from state), and the part of the previous
    states' gradients that bypasses the weight.
    """
    hidden = h.shape[1]
    extra = _parts(more, hidden) if more is not None else (0, 0, 0, 0)
    if cell == "lstm":
        i, f, g, o = _parts(kept, hidden)
        t = c.tanh()
        dc = dc + dh * o * (1 - t * t)
        di, df, dg, do = dc * g + extra[0], dc * c_before + extra[1], dc * i + extra[2], dh * t + extra[3]
        d = _cat([di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], -1)
        return d, d, None, dc * f
    if cell == "gru":
        r, z, n, m = _parts(kept, hidden)
        dn = (dh * (1 - z) + extra[2]) * (1 - n * n)
        dr, dz = (dn * m + extra[0]) * r * (1 - r), (dh * (h_before - n) + extra[1]) * z * (1 - z)
        return _cat([dr, dz, dn], -1), _cat([dr, dz, dn * r + extra[3]], -1), dh * z, None
    d = dh * (1 - h * h) if cell == "rnn_tanh" else dh * narrow_to(h > 0, dh.dtype)
    return d, d, None, None


class _Times:
    """The rows of each step in tensors over time, of a padded or packed sequence."""

    def __init__(self, over_time: Tensor, batch: int, batch_sizes: list[int], reverse: bool) -> None:
        self.batch, self.packed, self.reverse = batch, bool(batch_sizes), reverse
        self.sizes = list(batch_sizes) or [batch] * over_time.shape[0]
        self.times = list(range(len(self.sizes)))[:: -1 if reverse else 1]
        self.starts = [0]
        for size in self.sizes:
            self.starts.append(self.starts[-1] + size)

    def at(self, over_time: Tensor, time: int) -> Any:
        if self.packed:
            return _narrow(over_time, 0, self.starts[time], self.sizes[time])
        return _select(over_time, 0, time)

    def together(self, parts: list[Any], like: Tensor, width: int) -> Any:
        """Stack the results of steps in the order of time."""
        if not self.packed:
            return _stacked(parts, self.reverse, like, width)
        return _cat(parts[::-1] if self.reverse else parts, 0)

    def before(self, over_time: Tensor, first: Tensor, step: int) -> Any:
        """Return the previous states of the rows of a step."""
        rows = self.sizes[self.times[step]]
        if step == 0:
            return _narrow(first, 0, 0, rows)
        earlier = self.at(over_time, self.times[step - 1])
        have = earlier.shape[0]
        if rows <= have:
            return _narrow(earlier, 0, 0, rows)
        return _cat([earlier, _narrow(first, 0, have, rows - have)], 0)


def _replaced(state: Tensor, rows: Tensor) -> Any:
    """Return `state` with its first rows replaced."""
    have = rows.shape[0]
    if have == state.shape[0]:
        return rows
    return _cat([rows, _narrow(state, 0, have, state.shape[0] - have)], 0)


@decomposes("recurrent_sequence")
def recurrent_sequence(
    gates: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> Any:
    if cell == "lstm" and not batch_sizes and c0 is not None:
        return OPERATORS["lstm_sequence"](gates, h0, c0, weight, reverse)
    dtype = gates.dtype
    rows = _Times(gates, h0.shape[0], batch_sizes, reverse)
    gates, h, transposed_weight = wide(gates), wide(h0), OPERATORS["transpose"](wide(weight), 0, 1)
    c = None if c0 is None else wide(c0)
    bias = None if bias is None else wide(bias)
    outputs, cells, kept = [], [], []
    for time in rows.times:
        count = rows.sizes[time]
        state = None if c is None else _narrow(c, 0, 0, count)
        new, state, some = _step(cell, rows.at(gates, time), _narrow(h, 0, 0, count), state, transposed_weight, bias)
        h = _replaced(h, new)
        outputs.append(new)
        if c is not None:
            c = _replaced(c, state)
            cells.append(state)
        if some is not None:
            kept.append(some)
    hidden = h0.shape[1]
    output = narrow_to(rows.together(outputs, h, hidden), dtype)
    if cell.startswith("rnn"):
        return output, _empty(output), _empty(output)
    activations = narrow_to(rows.together(kept, h, 4 * hidden), dtype)
    return output, narrow_to(rows.together(cells, h, hidden), dtype) if c0 is not None else _empty(output), activations


@decomposes("recurrent_states")
def recurrent_states(
    gates: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> Any:
    output, cells, _ = OPERATORS["recurrent_sequence"](gates, h0, c0, weight, bias, batch_sizes, reverse, cell)
    if c0 is None:
        return output, _empty(output)
    return output, last_states(cells, c0, batch_sizes, reverse)


def last_states(over_time: Tensor, first: Tensor, batch_sizes: list[int], reverse: bool) -> Any:
    """Return the states of each sequence after its last step.

    Parameters
    ----------
    over_time, first
        States over time, (T, N, H) or (rows, H) for packed sequences; and the initial states, which
        are the result for sequences without steps.
    batch_sizes
        The number of rows per step of packed sequences, else empty.
    reverse
        Whether the steps ran from the last time to the first.
    """
    if not batch_sizes:
        return _select(over_time, 0, 0 if reverse else -1) if over_time.shape[0] else first
    if reverse:
        return _narrow(over_time, 0, 0, batch_sizes[0])
    parts = []
    start = len(over_time)
    done = 0
    for size in reversed(batch_sizes):
        start -= size
        if size > done:
            parts.append(_narrow(over_time, 0, start + done, size - done))
            done = size
    return parts[0] if len(parts) == 1 else _cat(parts, 0)


@decomposes("recurrent_layer")
def recurrent_layer(
    input: Tensor,
    input_weight: Tensor,
    input_bias: Tensor | None,
    h0: Tensor,
    c0: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> Any:
    gates = OPERATORS["linear"](input, input_weight, input_bias)
    return OPERATORS["recurrent_sequence"](gates, h0, c0, weight, bias, batch_sizes, reverse, cell)


@decomposes("recurrent_layer_states")
def recurrent_layer_states(
    input: Tensor,
    input_weight: Tensor,
    input_bias: Tensor | None,
    h0: Tensor,
    c0: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> Any:
    output, cells, _ = OPERATORS["recurrent_layer"](
        input, input_weight, input_bias, h0, c0, weight, bias, batch_sizes, reverse, cell
    )
    return output, _empty(output) if c0 is None else last_states(cells, c0, batch_sizes, reverse)


@decomposes("recurrent_sequence_backward")
def recurrent_sequence_backward(
    grad_output: Tensor | None,
    grad_cells: Tensor | None,
    grad_activations: Tensor | None,
    h0: Tensor,
    c0: Tensor | None,
    weight: Tensor,
    output: Tensor,
    cells: Tensor,
    activations: Tensor,
    batch_sizes: list[int],
    reverse: bool,
    cell: str,
) -> Any:
    if cell == "lstm" and not batch_sizes and c0 is not None:
        return OPERATORS["lstm_sequence_backward"](
            grad_output, grad_cells, grad_activations, h0, c0, weight, output, cells, activations, reverse
        )
    hidden, dtype = h0.shape[1], output.dtype
    rows = _Times(output, h0.shape[0], batch_sizes, reverse)
    output, h0, factor = wide(output), wide(h0), wide(weight)
    zeros = OPERATORS["mul"](h0, 0)
    dh, dc = zeros, zeros
    if c0 is not None:
        c0, cells = wide(c0), wide(cells)
    has_kept = cell in ("lstm", "gru")
    kept = wide(activations) if has_kept else None
    more = wide(grad_activations) if has_kept and grad_activations is not None else None
    of_gates = []
    of_weight = OPERATORS["mul"](factor, 0)
    of_bias = OPERATORS["sum"](of_weight, 1) if cell == "gru" else None
    for step in reversed(range(len(rows.times))):
        time = rows.times[step]
        count = rows.sizes[time]
        dh_now = _narrow(dh, 0, 0, count)
        dc_now = c_now = c_before = None
        if grad_output is not None:
            dh_now = dh_now + wide(rows.at(grad_output, time))
        if c0 is not None:
            dc_now, c_now, c_before = _narrow(dc, 0, 0, count), rows.at(cells, time), rows.before(cells, c0, step)
            if grad_cells is not None:
                dc_now = dc_now + wide(rows.at(grad_cells, time))
        h_before = rows.before(output, h0, step)
        of_input, of_state, passed, dc_now = _step_back(
            cell,
            rows.at(kept, time) if kept is not None else None,
            rows.at(more, time) if more is not None else None,
            h_before, c_before, rows.at(output, time), c_now, dh_now, dc_now,
        )  # fmt: skip
        of_gates.append(of_input)
        of_weight = of_weight + OPERATORS["transpose"](of_state, 0, 1) @ h_before
        if of_bias is not None:
            of_bias = of_bias + OPERATORS["sum"](of_state, 0)
        through = of_state @ factor
        dh = _replaced(dh, through if passed is None else through + passed)
        if c0 is not None:
            dc = _replaced(dc, dc_now)
    gate_count = weight.shape[0] // hidden if hidden else {"gru": 3}.get(cell, 1)
    made = rows.together(of_gates[::-1], zeros, gate_count * hidden)
    third = of_bias if of_bias is not None else dc if c0 is not None else _empty(output)
    return tuple(narrow_to(one, dtype) for one in (made, dh, third, of_weight))
