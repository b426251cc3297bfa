"""Averages of the gradients of a bucket, in their own dtype or in another one."""

from __future__ import annotations

from enum import Enum
from typing import Any

import candelabra
from candelabra import Tensor

from ..collectives.reductions import all_reduce
from ..futures import Future
from ..groups import world
from ..process_group import ProcessGroup
from .grad_bucket import GradBucket


class BuiltinCommHookType(Enum):
    """The hooks of `DistributedDataParallel._register_builtin_comm_hook`."""

    ALLREDUCE = None
    FP16_COMPRESS = candelabra.float16


def averaged(process_group: ProcessGroup | None, tensor: Tensor) -> Future:
    """Average a tensor in place, over the world by default."""
    group = process_group if process_group is not None else world()
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def averaged_in(dtype: Any, process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average the gradients of a bucket in another dtype; None stands for their own."""
    gradients = bucket.buffer()
    if not gradients.is_floating_point() or dtype in (None, gradients.dtype):
        return averaged(process_group, gradients)

    def convert(done: Future) -> Tensor:
        return gradients.copy_(done.value())

    return averaged(process_group, gradients.to(dtype)).then(convert)
