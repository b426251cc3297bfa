"""Hooks that compress gradients by PowerSGD (Vogels et al. 2019): matrices of low rank are sent."""

from __future__ import annotations

import logging
import math
import random
from typing import Any

import candelabra
from candelabra import Tensor

from ...collectives.reductions import all_reduce
from ...data_parallel.averaging import averaged
from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from ...groups import world
from ...process_group import ProcessGroup

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_logger = logging.getLogger(__name__)


class PowerSGDState:
    """What `powerSGD_hook` remembers from step to step.

    Parameters
    ----------
    process_group : ProcessGroup or None
        The ranks; None for the world.
    matrix_approximation_rank : int
        The rank of the approximations: more is slower and more precise.
    start_powerSGD_iter : int
        Gradients are averaged as they are for so many iterations.
    min_compression_rate : float
        A gradient is compressed only if that makes it smaller by more than this factor.
    use_error_feedback : bool
        Whether what compression loses is added in the next step.
    warm_start : bool
        Whether a step starts with the matrices of the last one.
    orthogonalization_epsilon : float
        Added to the norms of columns.
    random_seed : int
        Of the first matrices, equal on all ranks.
    compression_stats_logging_frequency : int
        The compression is logged once in so many iterations.
    batch_tensors_with_same_shape : bool
        Whether gradients of one shape are compressed by one multiplication.

    Raises
    ------
    ValueError
        Error feedback and a warm start need an iteration before them.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
    >>> model.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=10), powerSGD_hook)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = random.Random(random_seed)
        #: By the number of the bucket: what compression lost, and the two factors.
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.process_group = world()

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration with its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_powerSGD_iter:
            _logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """Return the compression rate, and the elements before and after compression."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after > 0 else 0, before, after)

    def _log(self, bucket: GradBucket) -> None:
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            _logger.info(
                "Compression stats: iter %s, total before compression %s, total after compression %s, rate %s",
                self.iter, before, after, rate,
            )  # fmt: skip
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _factors(self, index: int, batches: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Return the factors of matrices, of which the second ones are orthogonal."""
        shapes = [(*each.shape, min(*each.shape[1:], self.matrix_approximation_rank)) for each in batches]
        p_sizes = [count * rows * rank for count, rows, _, rank in shapes]
        q_sizes = [count * columns * rank for count, _, columns, rank in shapes]
        is_new = not self.warm_start or index not in self.p_memory_dict
        if is_new:
            self.p_memory_dict[index] = candelabra.empty(sum(p_sizes), dtype=batches[0].dtype, device=batches[0].device)
            generator = candelabra.Generator()
            generator.manual_seed(self.rng.randrange(1_000_000_000))
            drawn = candelabra.randn(sum(q_sizes), generator=generator)
            self.q_memory_dict[index] = drawn.to(batches[0].device, batches[0].dtype)
        ps = [
            piece.view(count, rows, rank)
            for piece, (count, rows, _, rank) in zip(self.p_memory_dict[index].split(p_sizes), shapes, strict=True)
        ]
        qs = [
            piece.view(count, columns, rank)
            for piece, (count, _, columns, rank) in zip(self.q_memory_dict[index].split(q_sizes), shapes, strict=True)
        ]
        for q in qs:
            _orthogonalize(q, self.orthogonalization_epsilon)
        return ps, qs


def _orthogonalize(matrices: Tensor, epsilon: float) -> None:
    """Make the columns of a batch of matrices orthonormal, in place: by Gram-Schmidt for few
    columns, and for half precisions, which have no QR.
    """
    columns = matrices.shape[2]
    if columns > 2 and matrices.dtype not in (candelabra.float16, candelabra.bfloat16):
        matrices.copy_(candelabra.linalg.qr(matrices)[0])
        return
    for number in range(columns):
        column = matrices[:, :, number : number + 1]
        norm = (column * column).sum(1, keepdim=True).sqrt() + epsilon
        column.div_(candelabra.where(norm == 0, candelabra.ones_like(norm), norm))
        if number + 1 < columns:
            rest = matrices[:, :, number + 1 :]
            rest.sub_((column * rest).sum(1, keepdim=True) * column)


def _with_error(state: PowerSGDState, index: int, buffer: Tensor) -> Tensor | None:
    """Add to the gradients what the last step lost; return a copy of the sum."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        buffer.add_(state.error_dict[index])
    return buffer.clone()


def _approximate(
    state: PowerSGDState, bucket: GradBucket, batches: list[Tensor], others: list[Tensor], finish: Any
) -> Future:
    """Return the future of the gradients' buffer: of matrices, their averaged approximations, and
    of other tensors their averages.
    """
    group = state.process_group if state.process_group is not None else world()
    index, buffer = bucket.index(), bucket.buffer()
    joined = candelabra.cat([each.reshape(-1) for each in others]) if others else None
    plain = None if joined is None else all_reduce(joined, group=group, async_op=True)
    ps: list[Tensor] = []
    qs: list[Tensor] = []
    sums = None
    if batches:
        ps, qs = state._factors(index, batches)
        for matrices, p, q in zip(batches, ps, qs, strict=True):
            p.copy_(candelabra.bmm(matrices, q))
        sums = all_reduce(state.p_memory_dict[index], group=group, async_op=True)

    def decompress() -> Tensor:
        if plain is not None and joined is not None:
            plain.wait()
            joined.div_(group.size())
            for tensor, part in zip(others, joined.split([each.numel() for each in others]), strict=True):
                tensor.copy_(part.view(tensor.shape))
        if sums is not None:
            sums.wait()
            for matrices, p, q in zip(batches, ps, qs, strict=True):
                _orthogonalize(p, state.orthogonalization_epsilon)
                q.copy_(candelabra.bmm(matrices.transpose(1, 2), p))
            all_reduce(state.q_memory_dict[index], group=group)
            state.q_memory_dict[index].div_(group.size())
            for matrices, p, q in zip(batches, ps, qs, strict=True):
                matrices.copy_(candelabra.bmm(p, q.transpose(1, 2)))
        finish()
        if not state.warm_start:
            state.p_memory_dict.pop(index, None)
            state.q_memory_dict.pop(index, None)
        return buffer

    def without_graph() -> Tensor:
        with candelabra.no_grad():
            return decompress()

    return Future(without_graph)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Average the gradients by approximations of low rank, one for each large matrix.

    Parameters
    ----------
    state : PowerSGDState
        What it remembers from step to step.
    bucket : GradBucket
        The gradients.
    """
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(state.process_group, buffer)
    index = bucket.index()
    before = _with_error(state, index, buffer)
    shapes: dict[tuple[int, ...], list[Tensor]] = {}
    others: list[Tensor] = []
    for number, tensor in enumerate(bucket.gradients()):
        matrix = tensor.view(tensor.shape[0], -1) if tensor.ndim else tensor.view(1, 1)
        rows, columns = matrix.shape
        small = (rows + columns) * min(rows, columns, state.matrix_approximation_rank)
        is_worth_it = small * state.min_compression_rate < rows * columns
        state.total_numel_before_compression += rows * columns
        state.total_numel_after_compression += small if is_worth_it else rows * columns
        if is_worth_it:
            key = (rows, columns) if state.batch_tensors_with_same_shape else (rows, columns, number)
            shapes.setdefault(key, []).append(matrix)
        else:
            others.append(tensor)
    state._log(bucket)
    groups = list(shapes.values())
    # A single matrix is approximated where it is.
    batches = [each[0].unsqueeze(0) if len(each) == 1 else candelabra.stack(each) for each in groups]

    def finish() -> None:
        for originals, batch in zip(groups, batches, strict=True):
            if len(originals) > 1:
                for original, result in zip(originals, batch.unbind(0), strict=True):
                    original.copy_(result)
        if before is not None:
            state.error_dict[index] = before - buffer

    future = _approximate(state, bucket, batches, others, finish)
    state.maybe_increase_iter(bucket)
    return future


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Average the gradients by one approximation of the whole bucket as a square matrix: faster and
    less precise than `powerSGD_hook`.
    """
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(state.process_group, buffer)
    index, length = bucket.index(), buffer.numel()
    before = _with_error(state, index, buffer)
    side = math.ceil(math.sqrt(length))
    rank = min(side, state.matrix_approximation_rank)
    state.total_numel_before_compression += length
    state.total_numel_after_compression += 2 * side * rank
    state._log(bucket)
    padded = candelabra.zeros(side * side, dtype=buffer.dtype, device=buffer.device)
    padded[:length].copy_(buffer)

    def finish() -> None:
        buffer.copy_(padded[:length])
        if before is not None:
            state.error_dict[index] = before - buffer

    future = _approximate(state, bucket, [padded.view(1, side, side)], [], finish)
    state.maybe_increase_iter(bucket)
    return future
