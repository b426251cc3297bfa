"""Recurrent layers, fused: all steps of a sequence in one call."""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_LSTM = (
    "gates and activations are (T, N, 4H), states (N, H), sequences of them (T, N, H), weight (4H, H): contiguous, "
    "of one floating-point dtype. A gradient that does not exist is null."
)
_SEES_CELL = (
    "gates and activations are (T, N, GH), G being the number of gates of cell, states (N, H), sequences of them "
    "(T, N, H), weight (GH, H), bias (GH): contiguous, of one floating-point dtype. If batch_sizes is not empty, "
    "the sequence is packed: rows instead of (T, N); batch_sizes never increase, and their sum is the number of rows. cells and activations have size 0 if the cell has none. The activations of gru have 4H. "
)
_SEES_LAYER = (
    "input is (T, N, I), or (rows, I) of a packed sequence, input_weight (GH, I) and input_bias (GH) instead of "
    "the gates; otherwise as recurrent_sequence."
)
_SEES_STACK = (
    "Layers on top of each other, for libraries that run all of them in one call. input is (T, N, I), or (rows, I) "
    "of a packed sequence; weights holds those of all layers in one contiguous tensor: the matrices of every "
    "direction of every layer, then the biases; states are (layers * directions, N, H). reserve is the kernel's "
    "own: bytes, of a size that it asks for by allocate_output. "
)

_ARGUMENTS = {
    "gates": "Tensor: the share of the inputs in the gates, of shape (T, N, 4H): input, forget, cell, output gate",
    "h0": "Tensor: the first output state, of shape (N, H)",
    "c0": "Tensor: the first cell state, of shape (N, H)",
    "weight": "Tensor: the weight of output states in the gates, of shape (4H, H)",
}
_NOTES = (
    "A long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000): of the gates i, f, g, o, "
    "``c = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h = sigmoid(o) * tanh(c)``. The gradient goes back through the steps "
    "(Werbos 1990)."
)
operator(
    "lstm_sequence(Tensor gates, Tensor h0, Tensor c0, Tensor weight, bool reverse)"
    " -> (Tensor output, Tensor cells, Tensor activations)",
    shape="lstm_sequence", title="lstm", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="lower",
    sees=_SEES_LSTM,
    doc=document(
        "Run a long short-term memory over a sequence.",
        ">>> zeros = candelabra.zeros(2, 1, 4)\n"
        ">>> one = candelabra.ones(1, 1)\n"
        ">>> candelabra.ops.lstm_sequence(zeros, one, one, zeros[0].T, False).cells.flatten()\ntensor([0.5000, 0.2500])",
        **_ARGUMENTS, reverse="bool: whether to run from the last step to the first", out="", notes=_NOTES,
        returns="(output, cells, activations): output states and cell states, of shape (T, N, H), and the gates after sigmoid or tanh, "
        "of shape (T, N, 4H)",
    ),
)  # fmt: skip
operator(
    "lstm_sequence_backward(Tensor? grad_output, Tensor? grad_cells, Tensor? grad_activations, Tensor h0, Tensor c0, Tensor weight,"
    " Tensor output, Tensor cells, Tensor activations, bool reverse)"
    " -> (Tensor grad_gates, Tensor grad_h0, Tensor grad_c0, Tensor grad_weight)",
    shape="lstm_sequence_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_LSTM,
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
        reverse="bool: the argument of the forward pass", returns="(grad_gates, grad_h0, grad_c0, grad_weight)", out="", notes=_NOTES,
    ),
)  # fmt: skip

_CELLS = 'str: ``"lstm"``, ``"gru"``, ``"rnn_tanh"`` or ``"rnn_relu"``'
_OF_ANY_CELL = {
    "gates": "Tensor: the share of the inputs in the gates, of shape (T, N, GH), or (rows, GH) of a packed sequence: 4 gates of "
    "``lstm`` (input, forget, cell, output), 3 of ``gru`` (reset, update, new), 1 of the others",
    "h0": "Tensor: the first output state, of shape (N, H)",
    "c0": "Tensor or None: the first cell state of ``lstm``, of shape (N, H)",
    "weight": "Tensor: the weight of output states in the gates, of shape (GH, H)",
    "bias": "Tensor or None: the bias of the state's part of ``gru``, of shape (GH); for other cells it is part of `gates`",
    "batch_sizes": "list of int: the number of rows of each step of packed sequences; empty if all steps have N",
}
_CELL_NOTES = (
    "``rnn_tanh`` and ``rnn_relu`` are an Elman network (1990), ``h = tanh(gates + weight @ h)`` or the same with relu. ``gru`` is a "
    "gated recurrent unit (Cho et al. 2014): of the shares x of the input and y of the state, ``r = sigmoid(x_r + y_r)``, "
    "``z = sigmoid(x_z + y_z)``, ``n = tanh(x_n + r * y_n)`` and ``h = (1 - z) * n + z * h``. ``lstm``: see ``lstm_sequence``."
)
operator(
    "recurrent_sequence(Tensor gates, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, bool reverse, str cell)"
    " -> (Tensor output, Tensor cells, Tensor activations)",
    shape="recurrent_sequence", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_CELL,
    doc=document(
        "Run a recurrent layer over sequences, and return what its gradient needs.",
        ">>> zeros, one = candelabra.zeros(2, 1, 3), candelabra.ones(1, 1)\n"
        ">>> candelabra.ops.recurrent_sequence(zeros, one, None, zeros[0].T, None, [], False, \"gru\").output.flatten()\n"
        "tensor([0.5000, 0.2500])",
        **_OF_ANY_CELL, reverse="bool: whether to run from the last step to the first", cell=_CELLS, out="", notes=_CELL_NOTES,
        returns="(output, cells, activations): output states, of the shape of `gates` with H for GH; cell states of ``lstm``, of the same "
        "shape; the gates of ``lstm`` after sigmoid or tanh, and of ``gru`` these and the state's part of n, with 4H. Results that "
        "a cell lacks are empty",
    ),
)  # fmt: skip
operator(
    "recurrent_states(Tensor gates, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, bool reverse, str cell)"
    " -> (Tensor output, Tensor cell_state)",
    shape="recurrent_states", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_CELL,
    doc=document(
        "Run a recurrent layer over sequences, and return only its states.",
        ">>> zeros, one = candelabra.zeros(2, 1, 4), candelabra.ones(1, 1)\n"
        ">>> candelabra.ops.recurrent_states(zeros, one, one, zeros[0].T, None, [], False, \"lstm\").cell_state\ntensor([[0.2500]])",
        **_OF_ANY_CELL, reverse="bool: whether to run from the last step to the first", cell=_CELLS, out="", notes=_CELL_NOTES,
        returns="(output, cell_state): output states, of the shape of `gates` with H for GH, and the cell state of ``lstm`` after the last "
        "step of each sequence, of shape (N, H), else empty",
    ),
)  # fmt: skip
operator(
    "recurrent_sequence_backward(Tensor? grad_output, Tensor? grad_cells, Tensor? grad_activations, Tensor h0, Tensor? c0, Tensor weight,"
    " Tensor output, Tensor cells, Tensor activations, int[] batch_sizes, bool reverse, str cell)"
    " -> (Tensor grad_gates, Tensor grad_h0, Tensor grad_third, Tensor grad_weight)",
    shape="recurrent_sequence_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        f"{_SEES_CELL}A gradient that does not exist is null. The third result is the gradient of c0 (lstm) or of "
        "bias (gru), else it has size 0."
    ),
    doc=document(
        "Compute the gradients of a recurrent layer.",
        ">>> zeros, one = candelabra.zeros(2, 1, 3), candelabra.ones(1, 1)\n"
        ">>> made = candelabra.ops.recurrent_sequence(zeros, one, None, zeros[0].T, None, [], False, \"gru\")\n"
        ">>> back = candelabra.ops.recurrent_sequence_backward(\n"
        "...     made.output, None, None, one, None, zeros[0].T, *made, [], False, \"gru\")\n"
        ">>> back.grad_weight.shape\ncandelabra.Size([3, 1])",
        grad_output="Tensor or None: the gradient of the output", grad_cells="Tensor or None: that of the cells",
        grad_activations="Tensor or None: that of the activations",
        **{name: text for name, text in _OF_ANY_CELL.items() if name in ("h0", "c0", "weight")},
        output="Tensor: the first result", cells="Tensor: the second result", activations="Tensor: the third result",
        batch_sizes=_OF_ANY_CELL["batch_sizes"], reverse="bool: the argument of the forward pass", cell=_CELLS,
        returns="(grad_gates, grad_h0, grad_third, grad_weight): grad_third is that of `c0` of ``lstm``, that of `bias` of ``gru``, else "
        "empty", out="", notes=_CELL_NOTES,
    ),
)  # fmt: skip

_LAYER = {
    "input": "Tensor: the input, of shape (T, N, I), or (rows, I) of a packed sequence",
    "input_weight": "Tensor: the weight of the input in the gates, of shape (GH, I)",
    "input_bias": "Tensor or None: the bias of that, of shape (GH)",
    **{name: text for name, text in _OF_ANY_CELL.items() if name != "gates"},
}
_EXAMPLE = (
    ">>> input, one, weight = candelabra.zeros(2, 1, 5), candelabra.ones(1, 1), candelabra.zeros(3, 5)\n"
    '>>> candelabra.ops.{}(input, weight, None, one, None, weight[:, :1], None, [], False, "gru").output.flatten()\n'
    "tensor([0.5000, 0.2500])"
)
operator(
    "recurrent_layer(Tensor input, Tensor input_weight, Tensor? input_bias, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias,"
    " int[] batch_sizes, bool reverse, str cell) -> (Tensor output, Tensor cells, Tensor activations)",
    shape="recurrent_layer", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_LAYER,
    doc=document(
        "Run a recurrent layer with the product of the input over sequences.", _EXAMPLE.format("recurrent_layer"),
        **_LAYER, reverse="bool: whether to run from the last step to the first", cell=_CELLS, out="", notes=_CELL_NOTES,
        returns="(output, cells, activations): as of ``recurrent_sequence`` of ``linear(input, input_weight, input_bias)``",
    ),
)  # fmt: skip
operator(
    "recurrent_layer_states(Tensor input, Tensor input_weight, Tensor? input_bias, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias,"
    " int[] batch_sizes, bool reverse, str cell) -> (Tensor output, Tensor cell_state)",
    shape="recurrent_layer_states", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_LAYER,
    doc=document(
        "Run a recurrent layer with the product of the input over sequences, and return only its states.",
        _EXAMPLE.format("recurrent_layer_states"),
        **_LAYER, reverse="bool: whether to run from the last step to the first", cell=_CELLS, out="", notes=_CELL_NOTES,
        returns="(output, cell_state): as of ``recurrent_states`` of ``linear(input, input_weight, input_bias)``",
    ),
)  # fmt: skip

_STACK = {
    "input": "Tensor: the input, of shape (T, N, I), or (rows, I) of a packed sequence",
    "weights": "Tensor: all weights in one, flattened: of each layer, and of each direction of it, the matrix of the input (GH, I) and that of "
    "the state (GH, H); then, with `has_biases`, of each again the two biases (GH)",
    "h0": "Tensor: the first output states of all layers and their directions, of shape (layers * directions, N, H)",
    "c0": "Tensor or None: the first cell states of ``lstm``, of the same shape",
    "batch_sizes": _OF_ANY_CELL["batch_sizes"],
    "layers": "int: the number of layers; each has the output of the previous one as its input",
    "bidirectional": "bool: whether each layer has a second direction, from the last step to the first",
    "has_biases": "bool: whether there are any",
    "cell": _CELLS,
}
_STACK_RETURNS = (
    "output, of shape (T, N, directions * H) or (rows, directions * H); the output states after the last step, of the shape of `h0`; the cell "
    "states of ``lstm`` after it, else empty"
)
_STACK_EXAMPLE = (
    ">>> input, h0, weights = candelabra.zeros(2, 1, 5), candelabra.ones(1, 1, 1), candelabra.zeros(3 * (5 + 1))\n"
    '>>> candelabra.ops.{}(input, weights, h0, None, [], 1, False, False, "gru")[0].flatten()\n'
    "tensor([0.5000, 0.2500])"
)
_STACK_ARGUMENTS = "Tensor input, Tensor weights, Tensor h0, Tensor? c0, int[] batch_sizes, int layers, bool bidirectional, bool has_biases, str cell"
operator(
    f"recurrent_stack({_STACK_ARGUMENTS}) -> (Tensor output, Tensor h, Tensor c)",
    shape="recurrent_stack", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_STACK,
    doc=document(
        "Run a stack of recurrent layers over sequences.",
        _STACK_EXAMPLE.format("recurrent_stack"), **_STACK, out="", notes=_CELL_NOTES, returns=f"(output, h, c): {_STACK_RETURNS}",
    ),
)  # fmt: skip
operator(
    f"recurrent_stack_kept({_STACK_ARGUMENTS}) -> (Tensor output, Tensor h, Tensor c, Tensor reserve)",
    shape="recurrent_stack_kept", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_STACK,
    doc=document(
        "Run a stack of recurrent layers, and return what the gradient needs.",
        _STACK_EXAMPLE.format("recurrent_stack_kept"), **_STACK, out="", notes=_CELL_NOTES,
        returns=f"(output, h, c, reserve): {_STACK_RETURNS}; and private data for the backend's "
        "``recurrent_stack_backward``, empty if the call was decomposed",
    ),
)  # fmt: skip
operator(
    "recurrent_stack_backward(Tensor? grad_output, Tensor? grad_h, Tensor? grad_c, Tensor input, Tensor weights, Tensor h0, Tensor? c0,"
    " Tensor output, Tensor reserve, int[] batch_sizes, int layers, bool bidirectional, bool has_biases, str cell)"
    " -> (Tensor grad_input, Tensor grad_weights, Tensor grad_h0, Tensor grad_c0)",
    shape="recurrent_stack_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        f"{_SEES_STACK}A gradient that there is none of is null; reserve has size 0 if the call was decomposed."
    ),
    doc=document(
        "Compute the gradients of a stack of recurrent layers.",
        ">>> input, h0, weights = candelabra.zeros(2, 1, 5), candelabra.ones(1, 1, 1), candelabra.zeros(3 * (5 + 1))\n"
        ">>> rest = [], 1, False, False, \"gru\"\n"
        ">>> output, h, _, reserve = candelabra.ops.recurrent_stack_kept(input, weights, h0, None, *rest)\n"
        ">>> candelabra.ops.recurrent_stack_backward(None, h, None, input, weights, h0, None, output, reserve, *rest)[2]\n"
        "tensor([[[0.0625]]])",
        grad_output="Tensor or None: the gradient of the output", grad_h="Tensor or None: that of the last output states",
        grad_c="Tensor or None: that of the last cell states",
        **{name: text for name, text in _STACK.items() if name in ("input", "weights", "h0", "c0")},
        output="Tensor: the first result", reserve="Tensor: the last result; if it is empty, the layers are run again",
        **{name: text for name, text in _STACK.items() if name not in ("input", "weights", "h0", "c0")},
        returns="(grad_input, grad_weights, grad_h0, grad_c0): of the shapes of the arguments; the last is empty without `c0`",
        out="", notes=_CELL_NOTES,
    ),
)  # fmt: skip
