"""Decompositions of stacks of recurrent layers and their gradients, layer by layer."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..nn.recurrent import last_states
from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

_narrow = OPERATORS["narrow"]
_reshape = OPERATORS["reshape"]
_cat = OPERATORS["cat"]
_stack = OPERATORS["stack"]
_select = OPERATORS["select"]


class _Weights:
    """The weights of one direction of one layer."""

    def __init__(self, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> None:
        self.w_ih, self.w_hh, self.b_ih, self.b_hh = w_ih, w_hh, b_ih, b_hh

    def biases(self, cell: str) -> tuple[Any, Any]:
        """Return the biases of input and state; a single one if they are only added."""
        if cell == "gru" or self.b_ih is None:
            return self.b_ih, self.b_hh
        return self.b_ih + self.b_hh, None


def _unpack_arguments(
    input: Tensor, weights: Tensor, h0: Tensor, layers: int, directions: int, has_biases: bool, cell: str
) -> list[_Weights]:
    """Return the weights of each direction of each layer, as views of the packed weights."""
    input_size, hidden = input.shape[-1], h0.shape[2]
    gates = _GATES[cell] * hidden
    start = 0

    def take(*shape: int) -> Any:
        nonlocal start
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        part = _narrow(weights, 0, start, count)
        start += count
        return _reshape(part, shape)

    widths = [input_size if layer == 0 else directions * hidden for layer in range(layers) for _ in range(directions)]
    matrices = [(take(gates, width), take(gates, hidden)) for width in widths]
    biases = [(take(gates), take(gates)) if has_biases else (None, None) for _ in widths]
    return [_Weights(*pair, *more) for pair, more in zip(matrices, biases)]


def _together(outputs: list[Any]) -> Any:
    return outputs[0] if len(outputs) == 1 else _cat(outputs, -1)


@decomposes("recurrent_stack")
def recurrent_stack(
    input: Tensor,
    weights: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    batch_sizes: list[int],
    layers: int,
    bidirectional: bool,
    has_biases: bool,
    cell: str,
) -> Any:
    kept = OPERATORS["recurrent_stack_kept"]
    if kept.has_kernel(input.device):  # only used for its gradient, which the other one has
        return tuple(kept(input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell))[:3]
    return _layer_by_layer(input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell)


def _layer_by_layer(
    input: Tensor,
    weights: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    batch_sizes: list[int],
    layers: int,
    bidirectional: bool,
    has_biases: bool,
    cell: str,
) -> tuple[Any, Any, Any]:
    directions = 2 if bidirectional else 1
    parts = _unpack_arguments(input, weights, h0, layers, directions, has_biases, cell)
    last_h, last_c = [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at, reverse = layer * directions + direction, direction == 1
            part, first, first_c = parts[at], _select(h0, 0, at), None if c0 is None else _select(c0, 0, at)
            bias_ih, bias_hh = part.biases(cell)
            output, cell_state = OPERATORS["recurrent_layer_states"](
                input, part.w_ih, bias_ih, first, first_c, part.w_hh, bias_hh, batch_sizes, reverse, cell
            )
            outputs.append(output)
            last_h.append(last_states(output, first, batch_sizes, reverse))
            last_c.append(cell_state)
        input = _together(outputs)
    return input, _stack(last_h), _stack(last_c) if c0 is not None else last_c[0]


@decomposes("recurrent_stack_kept")
def recurrent_stack_kept(
    input: Tensor,
    weights: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    batch_sizes: list[int],
    layers: int,
    bidirectional: bool,
    has_biases: bool,
    cell: str,
) -> Any:
    reserve = OPERATORS["empty"]((0,), dtype=_C.uint8, device=input.device)
    return *_layer_by_layer(input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell), reserve


def _spread(last: Tensor, over_time: Tensor, batch_sizes: list[int], reverse: bool) -> Any:
    """Return states over time that are zero except for the last of each sequence: the gradient of
    `last_states`.
    """

    def zeros(*shape: int) -> Any:
        return OPERATORS["zeros"]((*shape, last.shape[-1]), dtype=last.dtype, device=last.device)

    if not batch_sizes:
        others, last = zeros(over_time.shape[0] - 1, last.shape[0]), OPERATORS["unsqueeze"](last, 0)
        return _cat([last, others] if reverse else [others, last], 0)
    if reverse:
        return _cat([last, zeros(over_time.shape[0] - batch_sizes[0])], 0)
    parts = []
    for size, following in zip(batch_sizes, [*batch_sizes[1:], 0]):
        parts += [zeros(following), _narrow(last, 0, following, size - following)]
    return _cat(parts, 0)


def _sum(parts: list[Any]) -> Any:
    """Return the sum of the tensors that are not None, or None."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def _state(states: Tensor | None, at: int) -> Any:
    return None if states is None else _select(states, 0, at)


def _layers_again(
    parts: Any, input: Tensor, h0: Tensor, c0: Tensor | None, batch_sizes: list[int], layers: int, directions: int, cell: str
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Return the inputs of all layers, and by layer and direction the results of `recurrent_layer`,
    which the gradients need.
    """
    inputs, runs = [input], []
    for layer in range(layers):
        for direction in range(directions):
            at = layer * directions + direction
            bias_ih, bias_hh = parts[at].biases(cell)
            runs.append(
                OPERATORS["recurrent_layer"](
                    inputs[layer], parts[at].w_ih, bias_ih, _state(h0, at), _state(c0, at), parts[at].w_hh, bias_hh, batch_sizes,
                    direction == 1, cell,
                )
            )  # fmt: skip
        inputs.append(_together([run[0] for run in runs[-directions:]]))
    return inputs, runs


@decomposes("recurrent_stack_backward")
def recurrent_stack_backward(
    grad_output: Tensor | None,
    grad_h: Tensor | None,
    grad_c: Tensor | None,
    input: Tensor,
    weights: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    output: Tensor,
    reserve: Tensor,
    batch_sizes: list[int],
    layers: int,
    bidirectional: bool,
    has_biases: bool,
    cell: str,
) -> Any:
    directions = 2 if bidirectional else 1
    parts = _unpack_arguments(input, weights, h0, layers, directions, has_biases, cell)
    hidden, over_time = h0.shape[2], tuple(input.shape[:-1])
    steps = len(batch_sizes) or input.shape[0]
    row_count = math.prod(over_time)
    inputs, runs = _layers_again(parts, input, h0, c0, batch_sizes, layers, directions, cell)
    count = layers * directions
    matrices: list[Any] = [None] * count
    biases: list[Any] = [None] * count
    of_h0: list[Any] = [None] * count
    of_c0: list[Any] = [None] * count
    of_above = grad_output
    for layer in reversed(range(layers)):
        of_input = None
        for direction in range(directions):
            at, reverse = layer * directions + direction, direction == 1
            made, part = runs[at], parts[at]
            of_last, of_cell = _state(grad_h, at), _state(grad_c, at)
            spread = [
                _spread(one, made[0], batch_sizes, reverse) if one is not None and steps else None
                for one in (of_last, of_cell)
            ]
            own = None if of_above is None else _narrow(of_above, -1, direction * hidden, hidden)
            of_gates, of_h, third, of_w_hh = OPERATORS["recurrent_sequence_backward"](
                _sum([own, spread[0]]),
                spread[1],
                None,
                _state(h0, at),
                _state(c0, at),
                part.w_hh,
                *made,
                batch_sizes,
                reverse,
                cell,
            )
            # Without a step the initial states are the last ones.
            of_h0[at] = of_h if steps else _sum([of_h, of_last])
            of_c0[at] = (third if steps else _sum([third, of_cell])) if c0 is not None else None
            rows = _reshape(of_gates, (row_count, of_gates.shape[-1]))
            below = _reshape(inputs[layer], (row_count, inputs[layer].shape[-1]))
            matrices[at] = [OPERATORS["transpose"](rows, 0, 1) @ below, of_w_hh]
            if has_biases:
                of_bias = OPERATORS["sum"](rows, 0)
                biases[at] = [of_bias, third if cell == "gru" else of_bias]
            of_input = _sum([of_input, _reshape(rows @ part.w_ih, (*over_time, part.w_ih.shape[1]))])
        of_above = of_input
    of_weights = _cat(
        [_reshape(one, (-1,)) for pairs in (matrices, biases) if pairs[0] for pair in pairs for one in pair], 0
    )
    of_states = _stack(of_c0) if c0 is not None else OPERATORS["empty"]((0,), dtype=output.dtype, device=output.device)
    return of_above, of_weights, _stack(of_h0), of_states
