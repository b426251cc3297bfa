"""Losses that need a kernel or are worth one; the others are composites of elementwise operators
and reductions.
"""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_CLASSES = (
    "self is (N, C, d...), (C) having been made (1, C), and target (N, d...) int64; weight has C entries and the "
    "dtype of self. The kernel checks the class numbers. reduction is 0 for none, 1 for mean, 2 for sum. "
)
_SEES_SCORES = (
    "input is (N, C) and contiguous, target (N) int64; weight has C entries and the dtype of input. The kernel "
    "checks the class numbers. reduction is an integer: 0 for none, 1 for mean, 2 for sum. statistics is (2, N) and"
    " contiguous, float32 for half precisions: the largest score of each row, and the logarithm of the sum of "
    "exponentials of the differences to it. "
)
_SEES_LABELS = (
    "log_probs is (T, N, C), float32 or float64, of any strides. targets are int64 and contiguous, (N, S) or all in"
    " a row. The lengths are lists of numbers that were checked against the shapes; the kernel checks the labels."
)
_SEES_PAIR = "self and target have the dtype of the output, to which they were promoted."
_SEES_PAIR_GRADIENT = "grad, self and target have one floating-point dtype, and were broadcast to one shape."

_ARGUMENTS = {
    "input": "Tensor: log-probabilities of shape (N, C, ...)",
    "target": "Tensor: class numbers of dtype int64 and shape (N, ...)",
    "weight": "Tensor or None: of shape (C,); multiplies the loss of each class",
    "reduction": "int: 0 none, 1 mean (by the sum of the weights), 2 sum",
    "ignore_index": "int: a class number that is left out",
}
# self: (N, C, ...), log-probabilities; target: (N, ...), class numbers. reduction: 0 none, 1 mean,
# 2 sum. total_weight is the sum of the weights of the targets that were not ignored.
operator(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)",
    shape="nll_loss_forward", title="nll_loss", tier="fast", tags=HIDDEN,
    autocast="float32", batching="nll_loss_forward",
    sees=f"{_SEES_CLASSES}Without a reduction the output is (N, d...).",
    doc=document(
        "Compute the negative log-likelihood of classes: ``-weight[target] * input[target]``.",
        ">>> x = candelabra.tensor([[-1.0, -2.0], [-3.0, -4.0]])\n"
        ">>> candelabra.ops.nll_loss_forward(x, candelabra.tensor([0, 1]), None, 1, -100).output\ntensor(2.5000)",
        **_ARGUMENTS, returns="(output, total_weight): the loss, and the sum of the weights of the targets that were not left out", out="",
    ),
)  # fmt: skip
operator(
    "nll_loss_backward(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight) -> Tensor",
    shape="nll_loss_backward", tier="fast", tags=HIDDEN,
    batching="nll_loss_backward",
    sees=f"{_SEES_CLASSES}grad has the sizes of target without a reduction, else no dimensions.",
    doc=document(
        "Compute the gradient of the negative log-likelihood.",
        ">>> x, target = candelabra.zeros(2, 2), candelabra.tensor([0, 1])\n"
        ">>> candelabra.ops.nll_loss_backward(candelabra.tensor(1.0), x, target, None, 1, -100, candelabra.tensor(2.0))\n"
        "tensor([[-0.5000,  0.0000],\n        [ 0.0000, -0.5000]])",
        grad="Tensor: the gradient of the loss", **_ARGUMENTS, total_weight="Tensor: the second result of the loss",
        returns="Tensor: the gradient of the log-probabilities",
    ),
)  # fmt: skip
_SCORES = {
    "input": "Tensor: scores before softmax, of shape (N, C)",
    "target": "Tensor: class numbers of dtype int64 and shape (N,)",
    "weight": "Tensor or None: of shape (C,); multiplies the loss of each class",
    "ignore_index": "int: a class number that is left out",
    "reduction": 'str: ``"none"``, ``"mean"`` (by the sum of the weights) or ``"sum"``',
}
# statistics (2, N), float32 for half precisions: the largest score of each row, and
# log(sum(exp(score - largest))).
operator(
    "cross_entropy_forward(Tensor input, Tensor target, Tensor? weight=None, *, int ignore_index=-100, str reduction='mean')"
    " -> (Tensor output, Tensor total_weight, Tensor statistics)",
    kernel_types={"reduction": "int"}, shape="cross_entropy_forward", title="cross_entropy", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="float32",
    sees=f"{_SEES_SCORES}Without a reduction the output is (N).",
    doc=document(
        "Compute the cross entropy of scores and classes: ``-weight[target] * log_softmax(input)[target]``.",
        ">>> x = candelabra.tensor([[0.0, 0.0]])\n"
        ">>> candelabra.ops.cross_entropy_forward(x, candelabra.tensor([1])).output\ntensor(0.6931)",
        **_SCORES, returns="(output, total_weight, statistics): the loss, the sum of the weights of the targets that were not ignored, and "
        "for each row the largest score and the logarithm of the sum of ``exp(score - largest)``", out="",
    ),
)  # fmt: skip
operator(
    "cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, int ignore_index, str reduction, Tensor total_weight,"
    " Tensor statistics) -> Tensor",
    kernel_types={"reduction": "int"}, shape="cross_entropy_backward", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_SCORES}grad is (N) without a reduction, else it has no dimensions.",
    doc=document(
        "Compute the gradient of the cross entropy of scores and classes.",
        ">>> x, target = candelabra.zeros(1, 2), candelabra.tensor([0])\n"
        ">>> loss = candelabra.ops.cross_entropy_forward(x, target)\n"
        ">>> candelabra.ops.cross_entropy_backward(candelabra.tensor(1.0), x, target, None, -100, 'mean', *loss[1:])\n"
        "tensor([[-0.5000,  0.5000]])",
        grad="Tensor: the gradient of the loss", **_SCORES, total_weight="Tensor: the second result of the loss",
        statistics="Tensor: the third result of the loss", returns="Tensor: the gradient of the scores",
    ),
)  # fmt: skip
_CTC = {
    "log_probs": "Tensor: logarithms of probabilities, of shape (T, N, C)",
    "targets": "Tensor: labels, of shape (N, S), or those of all samples in a row",
    "input_lengths": "sequence of int: how much of T each sample has",
    "target_lengths": "sequence of int: the number of labels of each sample",
}
_BLANK = "int: the label that stands for none"
operator(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank,"
    " bool zero_infinity)"
    " -> (Tensor loss, Tensor log_alpha)",
    shape="_ctc_loss", title="ctc_loss", tags=HIDDEN | NO_OUT,
    autocast="float32",
    sees=_SEES_LABELS,
    doc=document(
        "Compute the negative log-likelihood of label sequences over all alignments (Graves et al. 2006).",
        ">>> x = candelabra.zeros(1, 1, 2) - 0.5\n"
        ">>> candelabra.ops._ctc_loss(x, candelabra.tensor([[1]]), [1], [1], 0, False).loss\ntensor([0.5000])",
        **_CTC, blank=_BLANK, zero_infinity="bool: whether infinite losses have gradients of zero; the losses stay infinite",
        returns="(loss, log_alpha): of shape (N,), and what the gradient needs", out="",
    ),
)  # fmt: skip
operator(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor loss,"
    " Tensor log_alpha, int blank, bool zero_infinity) -> Tensor",
    shape="_ctc_loss_backward", tags=HIDDEN | NO_OUT,
    sees=f"{_SEES_LABELS} grad, loss and log_alpha are contiguous, of the dtype of log_probs.",
    doc=document(
        "Compute the gradient of the CTC loss. The probabilities are taken to add up to one, as after a softmax.",
        ">>> x, target = candelabra.zeros(1, 1, 2) - 0.6931, candelabra.tensor([[1]])\n"
        ">>> made = candelabra.ops._ctc_loss(x, target, [1], [1], 0, False)\n"
        ">>> candelabra.ops._ctc_loss_backward(candelabra.ones(1), x, target, [1], [1], *made, 0, False)\ntensor([[[ 0.5000, -0.5000]]])",
        grad="Tensor: the gradient of the losses", **_CTC, loss="Tensor: the first result", log_alpha="Tensor: the second result",
        blank=_BLANK, zero_infinity="bool: whether infinite losses have gradients of zero",
        returns="Tensor: of shape (T, N, C)", out="",
    ),
)  # fmt: skip

# ---- losses of single elements and their gradients, one pass each
_PAIR = {
    "input": "Tensor: floating point, of any shape",
    "target": "Tensor: the factors of negative elements; broadcast with `input`",
}
_HUBER = {"delta": "number: the bound of the quadratic part", "scale": "number: multiplies the loss"}
for _name, _title, _arguments, _sentence, _given, _shown, _slope, _parameters in (
    ("squared_error", "mse_loss", "", "Compute ``(input - target)^2``.", "-0.5, 0.5", "tensor([2.2500, 0.2500])", "tensor([-3.,  1.])", {}),
    (
        "huber_error", "huber_loss", ", Scalar delta=1, Scalar scale=1",
        "Compute ``0.5 * d^2`` if the difference d is at most `delta`, else ``delta * (|d| - 0.5 * delta)`` (Huber 1964).",
        "-0.5, 0.5", "tensor([1.0000, 0.1250])", "tensor([-1.0000,  0.5000])", _HUBER,
    ),
    (
        "logits_cross_entropy", "binary_cross_entropy_with_logits", "", "Compute ``-(target * log(p) + (1 - target) * log(1 - p))`` of ``p = sigmoid(input)`` without overflow.",
        "-0.5, 0.5", "tensor([0.9741, 0.9741])", "tensor([-0.6225,  0.6225])", {},
    ),
    (
        "probability_cross_entropy", "binary_cross_entropy", "", "Compute ``-(target * log(input) + (1 - target) * log(1 - input))`` with the logarithms at least -100.",
        "0.25, 0.5", "tensor([1.3863, 0.6931])", "tensor([-4.,  2.])", {},
    ),
):  # fmt: skip
    _made = f">>> x, target = candelabra.tensor([{_given}]), candelabra.tensor([1.0, 0.0])"
    operator(
        f"{_name}(Tensor self, Tensor target{_arguments}) -> Tensor", shape="activation_backward", title=_title, tags=HIDDEN | COMPOSITE,
        sees=_SEES_PAIR,
        doc=document(
            _sentence, f"{_made}\n>>> candelabra.ops.{_name}(x, target)\n{_shown}", **_PAIR, **_parameters,
            returns="Tensor: the loss of each element",
        ),
    )  # fmt: skip
    operator(
        f"{_name}_backward(Tensor grad, Tensor self, Tensor target{_arguments}) -> Tensor", shape="loss_backward", tags=HIDDEN | COMPOSITE,
        sees=_SEES_PAIR_GRADIENT,
        doc=document(
            f"Compute the gradient of {_name} for its input.",
            f"{_made}\n>>> candelabra.ops.{_name}_backward(candelabra.ones(2), x, target)\n{_slope}",
            grad="Tensor: the gradient of the losses", **_PAIR, **_parameters, returns="Tensor: the gradient of the input",
        ),
    )  # fmt: skip
