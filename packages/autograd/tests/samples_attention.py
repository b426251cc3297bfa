"""Sample arguments for attention."""

from __future__ import annotations

from typing import Any

import candelabra


def _attention(d: Any) -> list[Any]:
    def tensors(heads: int = 2, groups: int = 2) -> tuple[Any, ...]:
        return d(1, heads, 3, 2), d(1, groups, 4, 2), d(1, groups, 4, 3)

    seen = candelabra.tensor([[True, False, True, True], [False, False, False, False], [True, True, True, True]])
    added = d(1, 1, 1, 4, grad=False)
    return [
        ((*tensors(), None, False, 0.7), {}),
        ((*tensors(), None, True, 0.7), {}),
        ((*tensors(4, 2), seen, False, 0.5), {}),
        ((*tensors(2, 1), added, False, 0.5), {}),
    ]


SAMPLERS = {"_scaled_dot_product_attention": _attention}
