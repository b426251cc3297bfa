"""Sample arguments for matrix products and cdist."""

from __future__ import annotations

from typing import Any


def call(*arguments: Any, **keywords: Any) -> Any:
    return arguments, keywords


SAMPLERS: dict[str, Any] = {
    "_addmm_activation": lambda d: [
        call(d(4), d(2, 3), d(3, 4)),
        call(d(2, 4), d(2, 3), d(3, 4), beta=0.5, alpha=2),
        call(d(4), d(2, 3), d(3, 4), use_gelu=True),
        call(d(2, 1), d(2, 3), d(4, 3).detach().t().requires_grad_(), beta=2, use_gelu=True),
    ],
    "_cdist_forward": lambda d: [((d(2, 3), d(4, 3), p), {}) for p in (1.0, 1.5, 2.0, 3.0, float("inf"))],
}
