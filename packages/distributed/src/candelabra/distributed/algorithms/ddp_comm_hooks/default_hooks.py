"""Hooks that average gradients, in their own dtype or in a smaller one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor, dtype

from ...collectives.reductions import all_reduce
from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from ...groups import world
from ...process_group import ProcessGroup


def _averaged(process_group: ProcessGroup | None, tensor: Tensor) -> Future:
    group = process_group if process_group is not None else world()
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


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
    return _averaged(process_group, bucket.buffer())


def _compressed(process_group: ProcessGroup | None, bucket: GradBucket, small: dtype) -> Future:
    buffer = bucket.buffer()

    def decompress(done: Future) -> Tensor:
        return buffer.copy_(done.value())

    return _averaged(process_group, buffer.to(small)).then(decompress)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average the gradients in float16, which halves what is sent."""
    return _compressed(process_group, bucket, candelabra.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average the gradients in bfloat16, which halves what is sent."""
    return _compressed(process_group, bucket, candelabra.bfloat16)


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
