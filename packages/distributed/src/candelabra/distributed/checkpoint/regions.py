"""Parts of tensors: where two overlap, and the bytes of one in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import prod

import candelabra
from candelabra import Tensor
from candelabra.serialization import FileError

#: Bytes that are in memory besides the tensors while they are read or written.
STAGE = 1 << 20
#: Bytes within which a part is read in one piece, with what lies between its rows.
_NEAR = 64 << 10


def intersection(
    first_offsets: Sequence[int], first_sizes: Sequence[int], second_offsets: Sequence[int], second_sizes: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """Return offsets and sizes of what two regions of a tensor have in common, or None.

    Examples
    --------
    >>> from candelabra.distributed.checkpoint.regions import intersection
    >>> intersection([0, 2], [4, 2], [2, 0], [4, 3])
    ([2, 2], [2, 1])
    """
    offsets, sizes = [], []
    for a, n, b, m in zip(first_offsets, first_sizes, second_offsets, second_sizes, strict=True):
        begin, end = max(a, b), min(a + n, b + m)
        if end <= begin:
            return None
        offsets.append(begin)
        sizes.append(end - begin)
    return offsets, sizes


def narrowed(tensor: Tensor, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return the view of a region of a tensor."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        tensor = tensor.narrow(dim, offset, size)
    return tensor


def contiguous_blocks(tensor: Tensor) -> Iterator[Tensor]:
    """Yield the elements of a tensor in order, as contiguous tensors of at most `STAGE` bytes on
    the host.
    """
    if tensor.numel() * tensor.dtype.itemsize <= STAGE:
        if tensor.numel():
            yield tensor.contiguous().cpu()
        return
    dim = next(dim for dim, size in enumerate(tensor.shape) if size > 1)
    size = tensor.shape[dim]
    half = size // 2
    yield from contiguous_blocks(tensor.narrow(dim, 0, half))
    yield from contiguous_blocks(tensor.narrow(dim, half, size - half))


class RegionReader:
    """Reads regions of tensors that are in files, row by row, through a buffer of `STAGE` bytes."""

    def __init__(self) -> None:
        self._stage = bytearray(STAGE)

    def read(
        self,
        descriptor: int,
        begin: int,
        shape: Sequence[int],
        dtype: candelabra.dtype,
        start: Sequence[int],
        target: Tensor,
    ) -> None:
        """Read a region of a tensor into `target`, which has the region's sizes.

        Parameters
        ----------
        descriptor
            The open file.
        begin
            Where the tensor begins in it.
        shape, dtype
            The tensor's.
        start
            The index of the region's first element.
        target
            On any device, of any dtype.
        """
        strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
        at = begin + dtype.itemsize * sum(a * b for a, b in zip(start, strides, strict=True))
        self._read(descriptor, at, strides, dtype, target)

    def _read(self, descriptor: int, at: int, strides: list[int], dtype: candelabra.dtype, target: Tensor) -> None:
        if target.numel() == 0:
            return
        sizes = list(target.shape)
        span = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        nbytes = span * dtype.itemsize
        if nbytes <= STAGE and (nbytes <= _NEAR or 4 * target.numel() >= span):
            with memoryview(self._stage) as memory:
                _fill(descriptor, memory[:nbytes], at)
            flat = candelabra.frombuffer(self._stage, dtype=dtype, count=span)
            target.copy_(flat.as_strided(sizes, strides))
            return
        dim = next(dim for dim, size in enumerate(sizes) if size > 1)
        half = sizes[dim] // 2
        self._read(descriptor, at, strides, dtype, target.narrow(dim, 0, half))
        at += half * strides[dim] * dtype.itemsize
        self._read(descriptor, at, strides, dtype, target.narrow(dim, half, sizes[dim] - half))


def _fill(descriptor: int, memory: memoryview, at: int) -> None:
    done = 0
    while done < len(memory):
        count = os.preadv(descriptor, [memory[done:]], at + done)
        if count == 0:
            raise FileError("it became shorter while it was read")
        done += count
