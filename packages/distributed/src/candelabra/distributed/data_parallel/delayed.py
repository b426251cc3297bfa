"""Gradients that are reduced together when that of one other parameter is there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra import autograd as _autograd  # noqa: F401  (a package is imported before its modules)
from candelabra.autograd.engine import queue_callback

from ..collectives.reductions import all_reduce
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp


class DelayedReduction:
    """The ``delay_all_reduce_named_params`` of `DistributedDataParallel`.

    Parameters
    ----------
    parameters : sequence of Tensor
        Those whose gradients are reduced late. Without a gradient they count as zeros.
    trigger : Tensor
        A parameter whose gradient comes after theirs.
    group : ProcessGroup
        The ranks.
    """

    def __init__(self, parameters: Sequence[Tensor], trigger: Tensor, group: ProcessGroup) -> None:
        self.is_enabled = True
        self._group = group
        self._kinds: dict[Any, list[Tensor]] = {}
        for parameter in parameters:
            self._kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        trigger.register_post_accumulate_grad_hook(self._reduce)

    def _reduce(self, _trigger: Tensor) -> None:
        if not self.is_enabled:
            return
        for members in self._kinds.values():
            with candelabra.no_grad():
                joined = candelabra.cat(
                    [(candelabra.zeros_like(each) if each.grad is None else each.grad).view(-1) for each in members]
                )
                joined.div_(self._group.size())
            work = all_reduce(joined, ReduceOp.SUM, self._group, async_op=True)
            queue_callback(partial(self._finish, work, joined, members))

    def _finish(self, work: Any, joined: Tensor, members: list[Tensor]) -> None:
        work.wait()
        for each, grad in zip(members, joined.split([each.numel() for each in members]), strict=True):
            each.grad = grad.view(each.shape)
