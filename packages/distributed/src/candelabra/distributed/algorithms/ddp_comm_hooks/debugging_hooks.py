"""Hooks to measure what communication costs."""

from __future__ import annotations

from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future


def noop_hook(_: object, bucket: GradBucket) -> Future:
    """Leave each rank its own gradients: no communication, and ranks that differ.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
    >>> from candelabra.distributed.data_parallel import GradBucket
    >>> noop_hook(None, GradBucket(0, candelabra.ones(2), [], True)).wait()
    tensor([1., 1.])
    """
    future = Future()
    future.set_result(bucket.buffer())
    return future
