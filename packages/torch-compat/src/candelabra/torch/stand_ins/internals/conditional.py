"""``torch._higher_order_ops.cond``: the operator of `torch.cond`."""

from __future__ import annotations

import candelabra

__all__ = ["cond", "cond_op"]

cond = cond_op = candelabra.cond
