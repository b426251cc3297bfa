"""Hooks that send gradients in eight bits, and average them after they were received."""

from __future__ import annotations

import candelabra
from candelabra import Tensor

from ...collectives.gathers import all_gather_into_tensor
from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from ...groups import world
from ...process_group import ProcessGroup

_LARGEST = 255


def _scales(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return what an integer stands for in each row, and which integer stands for zero."""
    lowest = rows.amin(1).clamp(max=0)
    highest = rows.amax(1).clamp(min=0)
    scale = ((highest - lowest) / _LARGEST).clamp(min=candelabra.finfo(candelabra.float32).eps)
    return scale, (-(lowest / scale).round()).clamp(0, _LARGEST)


def _averaged(process_group: ProcessGroup | None, gradients: Tensor, rows: Tensor) -> Future:
    """Gather the rows of all ranks, each with its own scale, and return their mean."""
    group = process_group if process_group is not None else world()
    count, size = rows.shape
    with candelabra.no_grad():
        rows = rows.float()
        scale, zero = _scales(rows)
        integers = ((rows / scale[:, None]).round() + zero[:, None]).clamp(0, _LARGEST).to(candelabra.uint8)
        scales = candelabra.stack([scale, zero])
    everyones_scales = scales.new_empty((group.size(), 2, count))
    everyones_integers = integers.new_empty((group.size(), count, size))
    works = [
        all_gather_into_tensor(everyones_scales, scales, group, async_op=True),
        all_gather_into_tensor(everyones_integers, integers, group, async_op=True),
    ]

    def average() -> Tensor:
        for work in works:
            assert work is not None
            work.wait()
        with candelabra.no_grad():
            total = candelabra.zeros_like(rows)
            for (scale, zero), received in zip(everyones_scales, everyones_integers, strict=True):
                total += scale[:, None] * (received.float() - zero[:, None])
            return gradients.copy_((total / group.size()).view(-1)[: gradients.numel()])

    return Future(average, lambda: all(work is not None and work.is_completed() for work in works))


def quantization_pertensor_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average gradients that are sent as integers of eight bits, with one scale for the bucket.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.quantization_hooks import quantization_pertensor_hook
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
    >>> model.register_comm_hook(None, quantization_pertensor_hook)
    >>> dist.destroy_process_group()
    """
    gradients = bucket.buffer()
    return _averaged(process_group, gradients, gradients.view(1, -1))


def quantization_perchannel_hook(
    process_group: ProcessGroup | None, bucket: GradBucket, bucket_size: int = 512
) -> Future:
    """Average gradients that are sent as integers of eight bits, with a scale for each
    `bucket_size` of them.
    """
    gradients = bucket.buffer()
    padded = candelabra.nn.functional.pad(gradients, (0, -gradients.numel() % bucket_size))
    return _averaged(process_group, gradients, padded.view(-1, bucket_size))
