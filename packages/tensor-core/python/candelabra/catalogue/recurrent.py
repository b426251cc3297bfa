"""Recurrent layers, fused: all steps of a sequence in one call."""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, document, operator

_ARGUMENTS = {
    "gates": "Tensor: the share of the inputs in the gates, of shape (T, N, 4H): input, forget, cell, output gate",
    "h0": "Tensor: the first output state, of shape (N, H)",
    "c0": "Tensor: the first cell state, of shape (N, H)",
    "weight": "Tensor: what output states are multiplied with for the gates, of shape (4H, H)",
}
_NOTES = (
    "A long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000): of the gates i, f, g, o, "
    "``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``. The gradient goes back through the steps "
    "(Werbos 1990)."
)
operator(
    "lstm_sequence(Tensor gates, Tensor h0, Tensor c0, Tensor weight, bool reverse)"
    " -> (Tensor output, Tensor cells, Tensor activations)",
    shape="lstm_sequence", tags=HIDDEN | COMPOSITE | NO_OUT,
    doc=document(
        "Run a long short-term memory over a sequence.",
        ">>> zeros = candelabra.zeros(2, 1, 4)\n"
        ">>> one = candelabra.ones(1, 1)\n"
        ">>> candelabra.ops.lstm_sequence(zeros, one, one, zeros[0].T, False).cells.flatten()\ntensor([0.5000, 0.2500])",
        **_ARGUMENTS, reverse="bool: from the last step to the first", out="", notes=_NOTES,
        returns="(output, cells, activations): output states and cell states, of shape (T, N, H), and the gates after sigmoid or tanh, "
        "of shape (T, N, 4H)",
    ),
)  # fmt: skip
operator(
    "lstm_sequence_backward(Tensor? grad_output, Tensor? grad_cells, Tensor? grad_activations, Tensor h0, Tensor c0, Tensor weight,"
    " Tensor output, Tensor cells, Tensor activations, bool reverse)"
    " -> (Tensor grad_gates, Tensor grad_h0, Tensor grad_c0, Tensor grad_weight)",
    shape="lstm_sequence_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    doc=document(
        "Compute the gradients of a long short-term memory.",
        ">>> zeros, one = candelabra.zeros(2, 1, 4), candelabra.ones(1, 1)\n"
        ">>> made = candelabra.ops.lstm_sequence(zeros, one, one, zeros[0].T, False)\n"
        ">>> back = candelabra.ops.lstm_sequence_backward(made.output, None, None, one, one, zeros[0].T, *made, False)\n"
        ">>> back.grad_weight.shape\ncandelabra.Size([4, 1])",
        grad_output="Tensor or None: the gradient of the output", grad_cells="Tensor or None: that of the cells",
        grad_activations="Tensor or None: that of the activations",
        **{name: text for name, text in _ARGUMENTS.items() if name != "gates"},
        output="Tensor: the first result", cells="Tensor: the second result", activations="Tensor: the third result",
        reverse="bool: as it was run", returns="(grad_gates, grad_h0, grad_c0, grad_weight)", out="", notes=_NOTES,
    ),
)  # fmt: skip
