"""Sample arguments for the cross-entropy."""

from __future__ import annotations

from typing import Any

import candelabra


def _calls(d: Any) -> list[tuple[Any, ...]]:
    """Return calls: the logits' shape, classes, weights, the ignored class, and the reduction."""
    weight = candelabra.tensor([0.5, 1.0, 2.0], dtype=d.dtype)
    target = candelabra.tensor([0, 2, 1, 2])
    return [
        (target, None, -100, "mean"),
        (target, weight, 2, "mean"),
        (target, weight, 0, "sum"),
        (target, None, 2, "none"),
    ]


def _forward(d: Any) -> list[Any]:
    return [
        ((d(4, 3), target, weight), {"ignore_index": ignored, "reduction": reduction})
        for target, weight, ignored, reduction in _calls(d)
    ]


def _backward(d: Any) -> list[Any]:
    made = []
    for target, weight, ignored, reduction in _calls(d):
        scores = d(4, 3)
        _, *kept = candelabra.ops.cross_entropy_forward(
            scores.detach(), target, weight, ignore_index=ignored, reduction=reduction
        )
        made.append(((d(4) if reduction == "none" else d(), scores, target, weight, ignored, reduction, *kept), {}))
    return made


SAMPLERS: dict[str, Any] = {"cross_entropy_forward": _forward, "cross_entropy_backward": _backward}
