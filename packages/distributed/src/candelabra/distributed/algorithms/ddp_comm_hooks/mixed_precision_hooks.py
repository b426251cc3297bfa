"""The hook of `DistributedDataParallel` with ``mixed_precision``."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from .default_hooks import _averaged


class _AllreduceUpcastHookState:
    """What `_reducer_allreduce_and_upcast_hook` needs.

    Parameters
    ----------
    process_group : ProcessGroup
        The ranks.
    reduce_dtype : dtype or None
        In which gradients are averaged; None for their own.
    """

    def __init__(self, process_group: Any, reduce_dtype: Any) -> None:
        self.process_group = process_group
        self.reduce_dtype = reduce_dtype


def _reducer_allreduce_and_upcast_hook(hook_state: _AllreduceUpcastHookState, bucket: GradBucket) -> Future:
    """Average gradients in another dtype."""
    gradients = bucket.buffer()
    if not gradients.is_floating_point() or hook_state.reduce_dtype in (None, gradients.dtype):
        return _averaged(hook_state.process_group, gradients)

    def upcast(done: Future) -> Tensor:
        return gradients.copy_(done.value())

    return _averaged(hook_state.process_group, gradients.to(hook_state.reduce_dtype)).then(upcast)
