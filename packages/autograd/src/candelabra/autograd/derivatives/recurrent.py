"""The gradient of recurrent layers.

Uses the fused backward operators, which decompose when they are differentiated themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..several import several_derivative

if TYPE_CHECKING:
    from candelabra import Tensor


def _lstm_sequence(
    grads: Any, results: list[Tensor], arguments: dict[str, Any], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    states = (arguments["h0"], arguments["c0"], arguments["weight"])
    gradients = ops.lstm_sequence_backward(*grads, *states, *results, arguments["reverse"])
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


several_derivative("lstm_sequence", ("gates", "h0", "c0", "weight"), _lstm_sequence, unsaved=("gates",))


def _of_steps(grads: Any, results: list[Tensor], arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Return the gradients of gates, h0, c0, weight and bias."""
    cell = arguments["cell"]
    of_output, of_cells, of_activations = grads
    of_gates, of_h0, third, of_weight = ops.recurrent_sequence_backward(
        of_output,
        of_cells if cell == "lstm" else None,
        None if cell.startswith("rnn") else of_activations,
        arguments["h0"], arguments["c0"], arguments["weight"], *results, arguments["batch_sizes"], arguments["reverse"], cell,
    )  # fmt: skip
    return of_gates, of_h0, third if cell == "lstm" else None, of_weight, third if cell == "gru" else None


def _recurrent_sequence(
    grads: Any, results: list[Tensor], arguments: dict[str, Any], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    gradients = _of_steps(grads, results, arguments)
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


several_derivative(
    "recurrent_sequence", ("gates", "h0", "c0", "weight", "bias"), _recurrent_sequence, unsaved=("gates", "bias")
)


def _recurrent_layer(
    grads: Any, results: list[Tensor], arguments: dict[str, Any], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    of_gates, *others = _of_steps(grads, results, arguments)
    input, weight = arguments["input"], arguments["input_weight"]
    rows = of_gates.flatten(0, -2)
    gradients = (
        rows.mm(weight).reshape(input.shape) if needs[0] else None,
        rows.t().mm(input.flatten(0, -2)) if needs[1] else None,
        rows.sum(0) if needs[2] else None,
        *others,
    )
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


several_derivative(
    "recurrent_layer",
    ("input", "input_weight", "input_bias", "h0", "c0", "weight", "bias"),
    _recurrent_layer,
    unsaved=("input_bias", "bias"),
)


def _recurrent_stack(
    grads: Any, results: list[Tensor], arguments: dict[str, Any], needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    cell = arguments["cell"]
    of_output, of_h, of_c, _ = grads
    gradients = ops.recurrent_stack_backward(
        of_output, of_h, of_c if cell == "lstm" else None,
        arguments["input"], arguments["weights"], arguments["h0"], arguments["c0"], results[0], results[3],
        arguments["batch_sizes"], arguments["layers"], arguments["bidirectional"], arguments["has_biases"], cell,
    )  # fmt: skip
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


several_derivative("recurrent_stack_kept", ("input", "weights", "h0", "c0"), _recurrent_stack)
