"""Hooks that average gradients, in their own dtype or in a smaller one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import dtype

from ...data_parallel.averaging import averaged, averaged_in
from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from ...process_group import ProcessGroup


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average the gradients, as without a hook.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
    >>> model.register_comm_hook(None, allreduce_hook)
    >>> dist.destroy_process_group()
    """
    return averaged(process_group, bucket.buffer())


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average the gradients in float16, which halves what is sent."""
    return averaged_in(candelabra.float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average the gradients in bfloat16, which halves what is sent."""
    return averaged_in(candelabra.bfloat16, process_group, bucket)


def fp16_compress_wrapper(hook: Callable[[Any, GradBucket], Future]) -> Callable[[Any, GradBucket], Future]:
    """Return a hook that calls another one with the gradients in float16."""
    return _wrapper(hook, candelabra.float16)


def bf16_compress_wrapper(hook: Callable[[Any, GradBucket], Future]) -> Callable[[Any, GradBucket], Future]:
    """Return a hook that calls another one with the gradients in bfloat16."""
    return _wrapper(hook, candelabra.bfloat16)


def _wrapper(hook: Callable[[Any, GradBucket], Future], small: dtype) -> Callable[[Any, GradBucket], Future]:
    def compress(state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(small))
        return hook(state, bucket).then(lambda done: buffer.copy_(done.value()))

    return compress
