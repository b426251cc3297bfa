"""Losses that need a kernel or are worth one; the others are composites of elementwise operators and reductions."""

from .declaration import COMPOSITE, HIDDEN, operator

# self: (N, C, ...), log-probabilities; target: (N, ...), class numbers. reduction: 0 none, 1 mean, 2 sum. total_weight is the sum
# of the weights of the targets that were not ignored.
operator(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)",
    shape="nll_loss_forward", tags=HIDDEN,
)  # fmt: skip
operator(
    "nll_loss_backward(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight) -> Tensor",
    shape="nll_loss_backward", tags=HIDDEN,
)  # fmt: skip
