"""Memory formats and their strides."""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._C import Tensor, memory_format

_RANKS = {_C.channels_last: 4, _C.channels_last_3d: 5}


def contiguous_strides(size: Sequence[int]) -> list[int]:
    """Return the strides of row-major order."""
    strides, step = [0] * len(size), 1
    for d in reversed(range(len(size))):
        strides[d] = step
        step *= max(size[d], 1)
    return strides


def strides_in(size: Sequence[int], wanted: memory_format | None, name: str) -> list[int]:
    """Return the strides of a memory format; row-major if it is None."""
    if wanted is None or wanted is _C.contiguous_format:
        return contiguous_strides(size)
    if wanted not in _RANKS:
        raise RuntimeError(
            f"{name}(): unsupported memory format preserve_format; give contiguous_format or channels_last"
        )
    if len(size) != _RANKS[wanted]:
        raise RuntimeError(
            f"{name}(): required rank {_RANKS[wanted]} tensor to use {str(wanted).rpartition('.')[2]} format, "
            f"but the sizes are {list(size)}"
        )
    batch, *spatial, channels = contiguous_strides((size[0], *size[2:], size[1]))
    return [batch, channels, *spatial]


def suggested(tensor: Tensor) -> memory_format:
    """Return the memory format that the strides of a tensor stand for: contiguous where they are
    not those of channels-last images.

    Strides of ascending size from the channels on, then from the last dimension to the second, then
    the first, are channels-last, with gaps, too. Where all but the first dimension are of size 1
    nothing tells, and it is contiguous.
    """
    for wanted, rank in _RANKS.items():
        if tensor.ndim == rank and _ascend_from_channels(tuple(tensor.shape), tensor.stride()):
            return wanted
    return _C.contiguous_format


def _ascend_from_channels(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if strides[1] == 0 or 0 in sizes:
        return False
    min_stride = 0
    for d in (1, *reversed(range(2, len(sizes))), 0):
        if strides[d] < min_stride or (d == 0 and min_stride == strides[1]):
            return False
        min_stride = strides[d] * sizes[d]
    return True


def channels_last_of(tensor: Tensor) -> memory_format | None:
    """Return the channels-last format that a tensor is in, and the contiguous one that it is not
    in.
    """
    for wanted, rank in _RANKS.items():
        if tensor.ndim == rank and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=wanted):
            return wanted
    return None
