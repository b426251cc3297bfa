"""Histograms of one or several dimensions, with bins of equal width or given edges."""

from __future__ import annotations

import math

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS
from candelabra.numeric_info import finfo

from ..movement.views import reshape
from ..registration import FUNCTIONS, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor

_Tensor = _C.Tensor


def _check_points(points: Tensor, weight: Tensor | None) -> None:
    """Check coordinates of shape (…, N) and their weights of shape (…)."""
    if points.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(
            f'"histogramdd" not implemented for {points.dtype}; convert with .to(candelabra.float32)'
        )
    if weight is None:
        return
    if weight.shape != points.shape[:-1]:
        raise RuntimeError(
            "candelabra.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(points.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype is not points.dtype:
        raise RuntimeError(
            "candelabra.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({points.dtype}), and weight({weight.dtype})"
        )


def _check_edges(edges: Tensor, points: Tensor, axis: int) -> None:
    if edges.dtype is not points.dtype:
        raise RuntimeError(
            "candelabra.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{points.dtype} and bins for dimension {axis} with dtype {edges.dtype}"
        )
    if edges.ndim != 1:
        raise RuntimeError(
            f"candelabra.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions in the bins tensor for "
            f"dimension {axis}"
        )
    if edges.numel() == 0:
        raise RuntimeError(
            "candelabra.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
            f"dimension {axis}"
        )


def _equal_edges(points: Tensor, counts: Sequence[int], range: Any) -> list[Tensor]:
    """Return the edges of bins of equal width per dimension, between the ends of `range` or of the
    points.
    """
    dims = len(counts)
    if range is not None:
        range = [float(end) for end in range]
        if len(range) != 2 * dims:
            raise RuntimeError(
                f"candelabra.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got {len(range)}"
            )
        lows, highs = range[::2], range[1::2]
    elif points.numel() == 0 or points.is_meta:
        lows, highs = [0.0] * dims, [1.0] * dims
    else:
        flat = reshape(points, (-1, dims))
        lows, highs = OPERATORS["amin"](flat, 0).tolist(), OPERATORS["amax"](flat, 0).tolist()
    edges = []
    for axis, (low, high, count) in enumerate(zip(lows, highs, counts)):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"candelabra.histogramdd: dimension {axis}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"candelabra.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {axis}"
            )
        if low == high:  # as in NumPy, a bin must have a positive width
            low, high = low - 0.5, high + 0.5
        largest = finfo(points.dtype).max
        if max(abs(low), abs(high)) > largest:
            raise RuntimeError(f"value cannot be converted to type {points.dtype} without overflow")
        # The width may overflow; a quarter of it does not.
        parts = 4 if high - low > largest else 1
        edge = FUNCTIONS["linspace"](low / parts, high / parts, count + 1, dtype=points.dtype, device=points.device)
        edges.append(edge * parts if parts > 1 else edge)
    return edges


def _between(coordinates: Tensor, edges: Tensor) -> Tensor:
    """Return the bin of each coordinate by a search among the edges; the last right edge gives one
    too many.
    """
    return _Tensor.searchsorted(edges, coordinates, right=True) - 1


def _even(coordinates: Tensor, edges: Tensor) -> Tensor:
    """Return the bin of each coordinate by its distance to the first edge, for bins of equal width;
    else as above.
    """
    count = edges.shape[0] - 1
    low, high = OPERATORS["select"](edges, 0, 0), OPERATORS["select"](edges, 0, count)
    # The width times the number of bins may overflow: scale everything by a power of two.
    if (
        not low.is_meta
        and float(OPERATORS["maximum"](OPERATORS["abs"](low), OPERATORS["abs"](high)))
        > finfo(edges.dtype).max * 2.0**-36
    ):
        coordinates, low, high = (numbers * 2.0**-40 for numbers in (coordinates, low, high))
    return ((coordinates - low) * count / (high - low)).to(_C.int64)


def _counted(points: Tensor, edges: Sequence[Tensor], places: Any, weight: Tensor | None, density: bool) -> Tensor:
    """Return the histogram: the sum of the weights of the points in each bin."""
    sizes = [max(edge.shape[0] - 1, 0) for edge in edges]
    total = math.prod(sizes)
    flat = reshape(points, (math.prod(points.shape[:-1]), len(edges)))
    inside: Any = None
    where: Any = None
    for axis, edge in enumerate(edges):
        if not total:
            break
        coordinates = OPERATORS["contiguous"](OPERATORS["select"](flat, 1, axis))
        first, last = OPERATORS["select"](edge, 0, 0), OPERATORS["select"](edge, 0, edge.shape[0] - 1)
        within = (coordinates >= first) & (coordinates <= last)  # NaN is in no bin
        inside = within if inside is None else inside & within
        place = OPERATORS["clamp"](places(coordinates, edge), 0, sizes[axis] - 1)
        where = place if where is None else where * sizes[axis] + place
    if where is None:  # no bins, or no coordinates: all points are in the only bin
        inside = OPERATORS["fill_"](
            OPERATORS["empty"]((flat.shape[0],), dtype=_C.bool, device=points.device), total > 0
        )
        where = OPERATORS["fill_"](OPERATORS["empty"]((flat.shape[0],), dtype=_C.int64, device=points.device), 0)
    all_inside = points.is_meta or bool(OPERATORS["all"](inside))
    if not all_inside:
        where = OPERATORS["masked_select"](where, inside)
    if weight is None:
        # Counted in integers: float32 cannot count beyond 2^24.
        one = OPERATORS["fill_"](OPERATORS["empty"]((1,), dtype=_C.int64, device=points.device), 1)
        empty = OPERATORS["fill_"](OPERATORS["empty"]((total,), dtype=_C.int64, device=points.device), 0)
        counted = OPERATORS["scatter_add"](empty, 0, where, OPERATORS["expand"](one, where.shape))
        hist = OPERATORS["_to_copy"](counted, dtype=points.dtype)
    else:
        chosen = reshape(weight.detach(), flat.shape[0])
        if not all_inside:
            chosen = OPERATORS["masked_select"](chosen, inside)
        empty = OPERATORS["fill_"](OPERATORS["empty"]((total,), dtype=points.dtype, device=points.device), 0)
        hist = OPERATORS["scatter_add"](empty, 0, where, chosen)
    hist = reshape(hist, sizes)
    if density:
        hist = hist / OPERATORS["sum"](hist)
        for axis, edge in enumerate(edges):
            widths = FUNCTIONS["diff"](edge)
            hist = hist / reshape(widths, [-1 if d == axis else 1 for d in range(len(edges))])
    return hist


def _check_count(count: int, axis: int) -> int:
    if count <= 0:
        raise RuntimeError(f"candelabra.histogram(): bins must be > 0, but got {count} for dimension {axis}")
    return count


@function(out="exact")
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Any:
    """Count the elements in bins.

    Parameters
    ----------
    input : Tensor
        Of dtype float32 or float64, and of any shape.
    bins : int or Tensor
        The number of bins of equal width, or their edges in ascending order. A bin includes its
        left edge, the last one also its right edge.
    range : pair of float, optional
        The range of the bins; by default from the minimum to the maximum, widened by 0.5 on each
        side if they are equal.
    weight : Tensor, optional
        The weight of each element (default 1), of the shape and dtype of `input`.
    density : bool
        Whether to normalize the integral over all bins to 1.
    out : pair of Tensor, optional
        Where histogram and edges are written.

    Returns
    -------
    (hist, bin_edges)
        Of the dtype of `input`.

    Raises
    ------
    RuntimeError
        If there are no bins, the range is not finite or descending, or dtypes or shapes do not
        match.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([1.0, 2.0, 1.0])
    >>> candelabra.histogram(x, bins=4, range=(0.0, 3.0), weight=candelabra.tensor([1.0, 2.0, 4.0])).hist
    tensor([0., 5., 2., 0.])
    """
    points = reshape(input.detach(), (input.numel(), 1))
    _check_points(points, None if weight is None else reshape(weight, weight.numel()))
    if isinstance(bins, _Tensor):
        if range is not None:
            raise TypeError(
                "histogram() received an invalid combination of arguments: range= goes with a number of bins, not with their edges"
            )
        _check_edges(bins, points, 0)
        edges = OPERATORS["clone"](bins.detach())
    else:
        edges = _equal_edges(points, [_check_count(bins, 0)], range)[0]
    flat = None if weight is None else reshape(weight, weight.numel())
    hist = _counted(points, [edges], _between, flat, density)
    if out is not None:
        for name, given, made in (("hist", out[0], hist), ("bin_edges", out[1], edges)):
            if given.dtype is not made.dtype:
                raise RuntimeError(
                    f"candelabra.histogram: input tensor and {name} tensor should have the same dtype, but got input {made.dtype} and "
                    f"{name} {given.dtype}"
                )
        hist, edges = _C.give_to_outs("histogram", out, (hist, edges))
    return return_types.histogram(hist, edges)


@function(method=False)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Count points in the cells of a multidimensional grid.

    Parameters
    ----------
    input : Tensor
        The points, of shape (…, N) and dtype float32 or float64.
    bins : int, sequence of int or sequence of Tensor
        The number of equal bins for all dimensions, or for each, or the ascending edges of each.
    range : sequence of float, optional
        The ranges of equal bins: minimum and maximum of each dimension in turn.
    weight : Tensor, optional
        The weight of each point (default 1), of shape (…).
    density : bool
        Whether to normalize the integral over all cells to 1.

    Returns
    -------
    (hist, bin_edges)
        The histogram, of N dimensions, and a tuple of N tensors of edges.

    Raises
    ------
    RuntimeError
        If there are not as many bins as coordinates, or as in :func:`candelabra.histogram`.

    Examples
    --------
    >>> import candelabra
    >>> points = candelabra.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> candelabra.histogramdd(points, bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    if input.ndim < 2:
        raise RuntimeError("candelabra.histogramdd: input tensor should have at least 2 dimensions")
    dims = input.shape[-1]
    if isinstance(bins, _Tensor):
        raise TypeError("histogramdd(): bins must be an int, a sequence of ints or a sequence of Tensors, not a Tensor")
    given: list[Any] = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(given) != dims:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    points = input.detach()
    _check_points(points, weight)
    if given and all(isinstance(edge, _Tensor) for edge in given):
        if range is not None:
            raise TypeError("histogramdd(): range= goes with numbers of bins, not with their edges")
        for axis, edge in enumerate(given):
            _check_edges(edge, points, axis)
        edges, places = [edge.detach() for edge in given], _between
    else:
        counts = [_check_count(count, axis) for axis, count in enumerate(given)]
        edges, places = _equal_edges(points, counts, range), _even
    return return_types.histogramdd(_counted(points, edges, places, weight, density), tuple(edges))
