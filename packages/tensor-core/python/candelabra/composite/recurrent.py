"""Recurrent layers as decompositions, step by step, with their gradients."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from .elementwise import narrow_to, wide
from .registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_select = OPERATORS["select"]
_cat = OPERATORS["cat"]


def _stacked(parts: list[Tensor], reverse: bool, like: Tensor, width: int) -> Any:
    """Put what the steps gave into the order of time."""
    if not parts:
        return OPERATORS["empty"]((0, like.shape[0], width), dtype=like.dtype, device=like.device)
    return _cat([OPERATORS["unsqueeze"](part, 0) for part in (parts[::-1] if reverse else parts)], 0)


def _parts(x: Tensor, hidden: int) -> list[Any]:
    return [OPERATORS["narrow"](x, -1, gate * hidden, hidden) for gate in range(4)]


@decomposes("lstm_sequence")
def lstm_sequence(gates: Tensor, h0: Tensor, c0: Tensor, weight: Tensor, reverse: bool) -> Any:
    steps, hidden = gates.shape[0], h0.shape[1]
    dtype = gates.dtype
    gates, h, c, turned = wide(gates), wide(h0), wide(c0), OPERATORS["transpose"](wide(weight), 0, 1)
    outputs, cells, activations = [], [], []
    for time in reversed(range(steps)) if reverse else range(steps):
        i, f, g, o = _parts(_select(gates, 0, time) + h @ turned, hidden)
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
