"""Sample arguments for resampling, padding, embedding_bag and scatter_reduce."""

from __future__ import annotations

import itertools
from typing import Any

import numpy

import candelabra


def _resampled(backward: bool) -> Any:
    def calls(d: Any) -> list[Any]:
        made = []
        for sizes, new, mode, align_corners, antialias in (
            ([4], [6], "linear", False, False),
            ([3], [5], "nearest", False, False),
            ([3, 4], [5, 2], "linear", True, False),
            ([3, 4], [4, 5], "cubic", False, False),
            ([5, 4], [2, 3], "linear", False, True),
            ([2, 2, 3], [3, 2, 4], "linear", False, False),
        ):
            options = ([], mode, align_corners, antialias)
            made.append(
                ((d(1, 2, *new), [1, 2, *sizes], *options) if backward else (d(1, 2, *sizes), new, *options), {})
            )
        return made

    return calls


def _places(d: Any, *shape: int) -> Any:
    """Return grid coordinates away from the edges and centres of pixels."""
    values = d.random.integers(-10, 11, shape) / 8 + 0.04 + d.random.uniform(0, 0.02, shape)
    return candelabra.tensor(values, dtype=d.dtype, requires_grad=True)


def _grid_sampler(d: Any) -> list[Any]:
    calls = [
        ((d(1, 2, 3, 4), _places(d, 1, 2, 2, 2), mode, padding, align_corners), {})
        for mode, padding, align_corners in itertools.product(
            ("bilinear", "bicubic"), ("zeros", "border", "reflection"), (False, True)
        )
    ]
    calls.append(((d(1, 2, 2, 3, 2), _places(d, 1, 1, 2, 2, 3), "bilinear", "reflection", False), {}))
    calls.append(((d(1, 2, 3, 4), _places(d, 1, 2, 2, 2).detach(), "nearest", "zeros", False), {}))
    return calls


_PADS: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((2, 4), (2, 1), "reflect"),
    ((2, 3, 4), (1, 2, 2, -1), "replicate"),
    ((1, 2, 2, 3), (1, 2, 1, 0), "circular"),
)


def _patches(d: Any) -> list[Any]:
    return [
        ((d(2, 2, 4, 3), [2, 2], [1, 1], [0, 0], [1, 1]), {}),
        ((d(1, 1, 5, 4), [2, 3], [2, 1], [1, 1], [1, 2]), {}),
    ]


def _patches_backward(d: Any) -> list[Any]:
    return [
        ((d(2, 8, 6), [4, 3], [2, 2], [1, 1], [0, 0], [1, 1]), {}),
        ((d(1, 6, 10), [5, 4], [2, 3], [2, 1], [1, 1], [1, 2]), {}),
    ]


def _pad_constant(d: Any) -> list[Any]:
    return [((d(3), [2, 1], 0.5), {}), ((d(2, 4, 3), [1, -1, 0, 2], 0), {}), ((d(2, 4), [-1, -1, -1, 1], 2), {})]


def _pad_edges(d: Any) -> list[Any]:
    return [((d(*shape), padding, mode), {}) for shape, padding, mode in _PADS]


def _pad_edges_backward(d: Any) -> list[Any]:
    calls = []
    for shape, padding, mode in _PADS:
        grown = list(shape)
        for number in range(len(padding) // 2):
            grown[-1 - number] += padding[2 * number] + padding[2 * number + 1]
        calls.append(((d(*grown), shape, padding, mode), {}))
    return calls


def _bags(d: Any) -> list[Any]:
    indices, offsets = candelabra.tensor([3, 1, 1, 0, 3, 2]), candelabra.tensor([0, 2, 2, 4])
    return [
        ((d(4, 3), indices, offsets, "sum", None, False, False, -1), {}),
        ((d(4, 3), indices, offsets, "sum", d(6), False, True, 1), {}),
        ((d(4, 3), indices, offsets, "mean", None, False, False, 3), {}),
        ((d.distinct(4, 3), indices, offsets, "max", None, False, False, -1), {}),
    ]


def _bags_backward(d: Any) -> list[Any]:
    calls = []
    for _, indices, offsets, mode, factors, by_frequency, has_end, padding in (call[0] for call in _bags(d)):
        kept = None if factors is None else factors.detach()
        _, bag, sizes, largest = candelabra.ops._embedding_bag(
            d(4, 3, grad=False), indices, offsets, mode, kept, by_frequency, has_end, padding
        )
        grad = d(3 if has_end else 4, 3)
        calls.append(((grad, indices, bag, sizes, largest, 4, mode, factors, mode == "mean", padding), {}))
    return calls


def _scatter_reduce(d: Any) -> list[Any]:
    index = candelabra.tensor([[0, 1, 0], [2, 1, 0], [2, 2, 0]])
    calls = []
    for reduce, include_self in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False)):
        values = d.random.permutation(24) * 0.17 - 1.03
        self, src = numpy.split(values, 2)
        tensors = [candelabra.tensor(x.reshape(4, 3), dtype=d.dtype, requires_grad=True) for x in (self, src)]
        calls.append(((tensors[0], 0, index, tensors[1], reduce), {"include_self": include_self}))
    return calls


SAMPLERS = {
    "_upsample": _resampled(False),
    "_upsample_backward": _resampled(True),
    "grid_sampler": _grid_sampler,
    "im2col": _patches,
    "col2im": _patches_backward,
    "_constant_pad_nd": _pad_constant,
    "_reflection_replication_pad": _pad_edges,
    "_reflection_replication_pad_backward": _pad_edges_backward,
    "_embedding_bag": _bags,
    "_embedding_bag_backward": _bags_backward,
    "scatter_reduce": _scatter_reduce,
}
