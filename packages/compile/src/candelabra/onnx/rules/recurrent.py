"""Rules of recurrent layers. Their gates are in another order in ONNX."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import Builder, Value
from .table import rule

#: By cell: the operator, and where its gates are in the recorded weights.
_CELLS = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "gru": ("GRU", (1, 0, 2)),
    "rnn_tanh": ("RNN", (0,)),
    "rnn_relu": ("RNN", (0,)),
}


def _arranged(b: Builder, weight: Value | None, order: Sequence[int], hidden: int, rows: Sequence[int]) -> str:
    """Return a weight or a bias with its gates in ONNX's order; zeros for None."""
    if weight is None:
        return b.expand(b.constant(0.0, b.result.dtype), [1, *rows])
    if len(order) == 1:
        return b.unsqueeze(weight, 0)
    parts = [b.slice(weight, 0, gate * hidden, (gate + 1) * hidden) for gate in order]
    return b.unsqueeze(b.op("Concat", *parts, axis=0), 0)


@rule("recurrent_layer_states")
def _recurrent_layer_states(
    b: Builder, input: Value, input_weight: Value, input_bias: Value | None, h0: Value, c0: Value | None, weight: Value,
    bias: Value | None, batch_sizes: Sequence[int], reverse: bool, cell: str,
) -> list[str | None]:  # fmt: skip
    if batch_sizes:
        b.refuse("ONNX has no packed sequences; run it on padded ones")
    kind, order = _CELLS[cell]
    hidden = b.static(weight.shape[1], "the number of hidden features")
    rows = [len(order) * hidden]
    weights = [_arranged(b, one, order, hidden, rows) for one in (input_weight, weight)]
    biases = None
    if input_bias is not None or bias is not None:
        biases = b.op("Concat", *(_arranged(b, one, order, hidden, rows) for one in (input_bias, bias)), axis=1)
    states = [b.unsqueeze(one, 0) for one in (h0, c0) if one is not None]
    made = b.several(
        kind, 3 if cell == "lstm" else 2, input, *weights, biases, None, *states, hidden_size=hidden,
        direction="reverse" if reverse else "forward", linear_before_reset=1 if cell == "gru" else None,
        activations=["Relu"] if cell == "rnn_relu" else None,
    )  # fmt: skip
    return [b.squeeze(made[0], 1), b.squeeze(made[2], 0) if cell == "lstm" else None]


@rule("recurrent_layer")
def _recurrent_layer(
    b: Builder, input: Value, input_weight: Value, input_bias: Value | None, h0: Value, c0: Value | None, weight: Value,
    bias: Value | None, batch_sizes: Sequence[int], reverse: bool, cell: str,
) -> list[str | None]:  # fmt: skip
    """The cell states of all steps, of which `rewriting` takes the last, are not in ONNX."""
    output, _ = _recurrent_layer_states(
        b, input, input_weight, input_bias, h0, c0, weight, bias, batch_sizes, reverse, cell
    )
    return [output, None, None]
