"""Losses, with backward where that is typical."""

from __future__ import annotations

from typing import Any

from ..inputs import integers, normal, uniform
from ..workload import both_ways, forward


def _functional(name: str, **options: Any) -> Any:
    return lambda xp, *given: getattr(xp.nn.functional, name)(*given, **options)


def _ctc(xp: Any, x: Any, labels: Any) -> Any:
    lengths = xp.full((16,), 100), xp.full((16,), 20)
    return xp.nn.functional.ctc_loss(x.log_softmax(2), labels, *lengths)


X, Y = normal(4096, 1000, grad=True), normal(4096, 1000, number=1)

WORKLOADS = [
    both_ways("cross_entropy, forward and backward, 4096 x 1000, transposed", _functional("cross_entropy"), normal(4096, 1000, layout="transposed", grad=True), integers(1000, 4096)),
    both_ways("mse_loss, forward and backward, 256 x 256", _functional("mse_loss"), normal(256, 256, grad=True), normal(256, 256, number=1)),
    forward("cross_entropy, 32 x 10", _functional("cross_entropy"), normal(32, 10), integers(10, 32)),
    forward("cross_entropy, 4096 x 1000", _functional("cross_entropy"), normal(4096, 1000), integers(1000, 4096)),
    both_ways("cross_entropy, forward and backward, 32 x 10", _functional("cross_entropy"), normal(32, 10, grad=True), integers(10, 32)),
    both_ways("cross_entropy, forward and backward, 4096 x 1000", _functional("cross_entropy"), X, integers(1000, 4096)),
    both_ways("cross_entropy, forward and backward, 4096 x 10,000", _functional("cross_entropy"), normal(4096, 10_000, grad=True), integers(10_000, 4096)),
    both_ways(
        "cross_entropy, label smoothing, forward and backward, 1024 x 1000", _functional("cross_entropy", label_smoothing=0.1),
        normal(1024, 1000, grad=True), integers(1000, 1024),
    ),
    both_ways(
        "cross_entropy of pixels, forward and backward, 4 x 21 x 128 x 128", _functional("cross_entropy"),
        normal(4, 21, 128, 128, grad=True), integers(21, 4, 128, 128),
    ),
    forward("mse_loss, 4096 x 1000", _functional("mse_loss"), normal(4096, 1000), Y),
    both_ways("mse_loss, forward and backward, 32 x 10", _functional("mse_loss"), normal(32, 10, grad=True), normal(32, 10, number=1)),
    both_ways("mse_loss, forward and backward, 4096 x 1000", _functional("mse_loss"), X, Y),
    both_ways("l1_loss, forward and backward, 4096 x 1000", _functional("l1_loss"), X, Y),
    both_ways("smooth_l1_loss, forward and backward, 4096 x 1000", _functional("smooth_l1_loss"), X, Y),
    both_ways(
        "binary_cross_entropy_with_logits, forward and backward, 4096 x 1000", _functional("binary_cross_entropy_with_logits"),
        X, uniform(4096, 1000, low=0.0, high=1.0, number=1),
    ),
    both_ways("kl_div, forward and backward, 4096 x 1000", _functional("kl_div", reduction="batchmean"), X, uniform(4096, 1000, low=0.01, high=1.0, number=1)),
    both_ways("nll_loss, forward and backward, 4096 x 1000", _functional("nll_loss"), X, integers(1000, 4096), read=2 * 4096 * 72),
    both_ways(
        "cosine_embedding_loss, forward and backward, 1024 x 256", lambda xp, a, b: xp.nn.functional.cosine_embedding_loss(a, b, xp.ones(1024)),
        normal(1024, 256, grad=True), normal(1024, 256, grad=True, number=1),
    ),
    both_ways(
        "triplet_margin_loss, forward and backward, 1024 x 256", _functional("triplet_margin_loss"),
        *(normal(1024, 256, grad=True, number=number) for number in range(3)),
    ),
    forward(
        "cross_entropy, 4096 x 100, label smoothing", lambda xp, x, y: xp.nn.functional.cross_entropy(x, y, label_smoothing=0.1),
        normal(4096, 100), integers(100, 4096),
    ),
    both_ways("ctc_loss, forward and backward, 100 steps, 16 x 50", _ctc, normal(100, 16, 50, grad=True), integers(50, 16, 20, low=1), tolerance=1e-3),
]  # fmt: skip
