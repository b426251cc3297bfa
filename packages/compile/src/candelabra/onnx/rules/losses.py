"""Rules of losses."""

from __future__ import annotations

from ..builder import Builder, Value
from .table import rule

_REDUCTIONS = ("none", "mean", "sum")


@rule("nll_loss_forward")
def _nll_loss_forward(
    b: Builder, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> list[str | None]:
    scores, classes = b.name(self), b.name(target)
    if self.rank == 1:
        scores, classes = b.unsqueeze(self, 0), b.reshape(target, [1])
    found = b.op(
        "NegativeLogLikelihoodLoss",
        scores,
        classes,
        weight,
        reduction=_REDUCTIONS[reduction],
        ignore_index=ignore_index,
    )
    return [b.squeeze(found, 0) if self.rank == 1 and reduction == 0 else found, None]


@rule("cross_entropy_forward")
def _cross_entropy_forward(
    b: Builder, input: Value, target: Value, weight: Value | None = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> list[str | None]:  # fmt: skip
    return [
        b.op("SoftmaxCrossEntropyLoss", input, target, weight, reduction=reduction, ignore_index=ignore_index),
        None,
        None,
    ]


def _difference(b: Builder, self: Value, target: Value) -> str:
    return b.op("Sub", b.cast(self, b.result.dtype), b.cast(target, b.result.dtype))


@rule("squared_error")
def _squared_error(b: Builder, self: Value, target: Value) -> str:
    difference = _difference(b, self, target)
    return b.op("Mul", difference, difference)


@rule("huber_error")
def _huber_error(b: Builder, self: Value, target: Value, delta: float = 1, scale: float = 1) -> str:
    def number(value: float) -> str:
        return b.constant(value, b.result.dtype)

    difference = _difference(b, self, target)
    near = b.op("Clip", difference, number(-delta), number(delta))
    found = b.op("Mul", near, b.op("Sub", difference, b.op("Mul", near, number(0.5))))
    return b.op("Mul", found, number(scale))


@rule("logits_cross_entropy")
def _logits_cross_entropy(b: Builder, self: Value, target: Value) -> str:
    x, t = b.cast(self, b.result.dtype), b.cast(target, b.result.dtype)
    # max(x, 0) - x * t + log(1 + exp(-abs(x)))
    linear = b.op("Sub", b.op("Relu", x), b.op("Mul", x, t))
    return b.op("Add", linear, b.op("Softplus", b.op("Neg", b.op("Abs", x))))


@rule("probability_cross_entropy")
def _probability_cross_entropy(b: Builder, self: Value, target: Value) -> str:
    def logarithm(name: str) -> str:
        return b.op("Max", b.op("Log", name), b.constant(-100, b.result.dtype))

    x, t, one = b.cast(self, b.result.dtype), b.cast(target, b.result.dtype), b.constant(1, b.result.dtype)
    hit = b.op("Mul", t, logarithm(x))
    missed = b.op("Mul", b.op("Sub", one, t), logarithm(b.op("Sub", one, x)))
    return b.op("Neg", b.op("Add", hit, missed))
