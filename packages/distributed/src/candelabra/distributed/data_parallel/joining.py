"""Training with different numbers of inputs: what ranks do that have no more."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import candelabra

from ..collectives.reductions import all_reduce
from ..join_context import JoinHook
from . import agreement

if TYPE_CHECKING:
    from .distributed_data_parallel import DistributedDataParallel

#: What a rank tells the others before each forward pass: it has inputs, or it has reduced for
#: others. The first rank that still has inputs is the source of buffers.
_NONE = 1 << 30


class JoinContext:
    """The block of `DistributedDataParallel.join`.

    Before each forward pass all ranks tell whether they have inputs. Ranks that have none shadow
    the collectives of the forward and the backward pass.
    """

    def __init__(
        self, model: DistributedDataParallel, divides_by_all: bool, is_enabled: bool, raises_early: bool
    ) -> None:
        self._model = model
        self._divides_by_all = divides_by_all
        self._is_enabled = is_enabled
        self._raises_early = raises_early
        self._source = 0
        self._steps = 0

    def __enter__(self) -> JoinContext:
        if self._is_enabled:
            self._model._join = self
            self._steps = 0
        return self

    def source(self) -> int:
        """Return the rank whose buffers count."""
        return self._source

    def _tell(self, has_inputs: bool, reduces: bool) -> tuple[int, bool]:
        """Tell the others; return how many ranks have inputs, and whether they reduce gradients."""
        group = self._model.process_group
        marks = candelabra.zeros(group.size() + 1, dtype=candelabra.int64, device=group.host_or_only_device())
        if has_inputs:
            marks[group.rank()] = 1
            marks[group.size()] = int(reduces)
        all_reduce(marks, group=group)
        values = [int(value) for value in marks.tolist()]
        active = [rank for rank in range(group.size()) if values[rank]]
        self._source = active[0] if active else _NONE
        if not self._divides_by_all and active:
            self._model.reducer.divisor = len(active)
        if self._raises_early and len(active) < group.size():
            raise RuntimeError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                if has_inputs
                else f"Rank {group.job.rank} exhausted all inputs."
            )
        return len(active), values[group.size()] > 0

    def notify(self) -> None:
        """Tell the others before a forward pass that this rank has inputs."""
        model = self._model
        self._tell(True, candelabra.is_grad_enabled() and model.require_backward_grad_sync)
        self._steps += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_enabled:
            return
        model = self._model
        model._join = None
        if kind is not None:
            return
        try:
            while True:
                active, reduces = self._tell(False, False)
                if not active:
                    break
                self._shadow(reduces, False)
            if not self._raises_early:
                self._copy_last()
        finally:
            model.reducer.divisor = model.process_group.size()

    def _shadow(self, reduces: bool, keeps_gradients: bool) -> None:
        model = self._model
        if reduces:
            model.reducer.rebuild()
        if model.training and model.forward_sync_buffers and model._buffers_to_copy:
            agreement.copy_from(self._source, model._buffers_to_copy, model.process_group)
        if reduces:
            model.reducer.shadow(keeps_gradients)

    def _copy_last(self) -> None:
        """Copy the values of the rank that had the most inputs."""
        model = self._model
        group = model.process_group
        steps = candelabra.zeros(group.size(), dtype=candelabra.int64, device=group.host_or_only_device())
        steps[group.rank()] = self._steps
        all_reduce(steps, group=group)
        counts = [int(count) for count in steps.tolist()]
        source = counts.index(max(counts))
        agreement.copy_from(source, [*model.module.parameters(), *model._buffers_to_copy], group)


class DataParallelJoinHook(JoinHook):
    """What a `DistributedDataParallel` does in a `Join`: as in its own block, but gradients stay
    for other joinables, such as a `ZeroRedundancyOptimizer`.
    """

    def __init__(self, model: DistributedDataParallel, divides_by_all: bool) -> None:
        self._model = model
        self._context = JoinContext(model, divides_by_all, True, False)
        model._shared_join = self._context

    def main_hook(self) -> None:
        _, reduces = self._context._tell(False, False)
        self._context._shadow(reduces, True)

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self._model
        model.reducer.divisor = model.process_group.size()
        self._context._copy_last()
