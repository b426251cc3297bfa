"""Hooks that let a `ZeroRedundancyOptimizer` step during the backward pass of a
`DistributedDataParallel`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from candelabra import Tensor

from ...data_parallel.distributed_data_parallel import DistributedDataParallel
from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from ...work import Work

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]

_Hook = Callable[[Any, GradBucket], Future]


class StepsByBuckets(Protocol):
    """What these hooks call of a `ZeroRedundancyOptimizer`."""

    overlap_with_ddp: bool

    def step_bucket(self, parameters: list[Tensor], gradients: list[Tensor]) -> list[Work]:
        """Update this rank's parameters, and start to copy them to the others."""


class _Steps:
    """The steps of one backward pass, bucket by bucket in the order of the reductions."""

    def __init__(self, zero: StepsByBuckets) -> None:
        if not zero.overlap_with_ddp:
            raise ValueError(
                "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook properly"
            )
        self._zero = zero
        self._reduced: list[tuple[GradBucket, Future]] = []
        self._sent: list[Any] = []

    def add(self, bucket: GradBucket, future: Future) -> None:
        """Take a bucket that is being reduced."""
        self._reduced.append((bucket, future))

    def take(self) -> None:
        """Wait for all buckets so far, step this rank's parameters of them, and send those."""
        while self._reduced:
            bucket, future = self._reduced.pop(0)
            bucket.set_buffer(future.wait())
            self._sent += self._zero.step_bucket(bucket.parameters(), bucket.gradients())

    def finish(self) -> None:
        """Wait until all ranks have the new parameters."""
        self.take()
        sent, self._sent = self._sent, []
        for work in sent:
            work.wait()


def _stepping(hook: _Hook, zero: StepsByBuckets, is_interleaved: bool) -> _Hook:
    steps = _Steps(zero)

    def reduce_and_step(state: Any, bucket: GradBucket) -> Future:
        future = hook(state, bucket)
        if is_interleaved:
            # The collectives of all ranks have one order: this reduction, then the step before.
            steps.take()
        steps.add(bucket, future)
        if not bucket.is_last():
            return future

        def finish(done: Future) -> Any:
            steps.finish()
            return done.value()

        return future.then(finish)

    return reduce_and_step


def hook_with_zero_step(
    hook: _Hook, ddp: DistributedDataParallel, zero: StepsByBuckets, shard_buckets: bool = False
) -> _Hook:
    """Return a hook that reduces gradients by another one, and steps the optimizer at the end of
    the backward pass, while later buckets are still reduced.

    The program does not call the optimizer's ``step``. Each backward pass steps, the first one too.

    Parameters
    ----------
    hook : callable
        Reduces a bucket, such as `default_hooks.allreduce_hook`.
    ddp : DistributedDataParallel
        With which the result is registered.
    zero : ZeroRedundancyOptimizer
        Made with ``overlap_with_ddp=True``.
    shard_buckets : bool
        Has no effect: parameters belong to ranks by size, whatever buckets they are in.

    Raises
    ------
    ValueError
        The optimizer was made without ``overlap_with_ddp=True``.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> from candelabra.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1, bias=False))
    >>> before = model.module.weight.tolist()
    >>> zero = ZeroRedundancyOptimizer(model.parameters(), candelabra.optim.SGD, overlap_with_ddp=True, lr=0.5)
    >>> model.register_comm_hook(None, hook_with_zero_step(allreduce_hook, model, zero))
    >>> model(candelabra.ones(1, 2)).sum().backward()
    >>> (candelabra.tensor(before) - model.module.weight.detach()).round(decimals=3).tolist()
    [[0.5, 0.5]]
    >>> dist.destroy_process_group()
    """
    return _stepping(hook, zero, is_interleaved=False)


def hook_with_zero_step_interleaved(
    hook: _Hook, ddp: DistributedDataParallel, zero: StepsByBuckets, shard_buckets: bool = False
) -> _Hook:
    """Return a hook that reduces gradients by another one, and steps the optimizer for a bucket
    when the gradients of the next one are there.

    Parameters
    ----------
    hook, ddp, zero, shard_buckets
        As for `hook_with_zero_step`.

    Raises
    ------
    ValueError
        The optimizer was made without ``overlap_with_ddp=True``.
    """
    return _stepping(hook, zero, is_interleaved=True)
