"""The gradient of recurrent layers: the fused backward operators, which decompose where they are differentiated themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..several import several_derivative

if TYPE_CHECKING:
    from candelabra import Tensor


def _lstm_sequence(grads: Any, results: list[Tensor], arguments: dict[str, Any], needs: tuple[bool, ...]) -> tuple[Any, ...]:
    states = (arguments["h0"], arguments["c0"], arguments["weight"])
    gradients = ops.lstm_sequence_backward(*grads, *states, *results, arguments["reverse"])
    return tuple(gradient if needed else None for gradient, needed in zip(gradients, needs, strict=True))


several_derivative("lstm_sequence", ("gates", "h0", "c0", "weight"), _lstm_sequence, unsaved=("gates",))
