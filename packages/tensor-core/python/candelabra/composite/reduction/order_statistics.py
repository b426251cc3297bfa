"""Medians, quantiles and histograms."""

from __future__ import annotations

import builtins
import math

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS
from candelabra.numeric_info import finfo

from ..methods.tape_methods import _Tensor
from ..movement.views import reshape, wrap_dim
from ..registration import decomposes, function
from ..transformed import any_holds, is_differentiated_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_sum = OPERATORS["sum"]
_where = OPERATORS["where"]


def _at(input: Tensor, position: Tensor, dim: int, keepdim: Any, result_type: Any) -> Any:
    """Return the elements at indices along a dimension, which becomes size 1, and the indices."""
    value, index = OPERATORS["gather"](input, dim, position), position
    if not keepdim:
        value, index = (OPERATORS["squeeze"](x, dim) for x in (value, index))
    return result_type(value, index)


@decomposes("_kthvalue_index")
def _kthvalue_index(self: Tensor, dim: int, rank: int, among: str) -> Any:
    values, indices = OPERATORS["sort"](self.detach(), dim, False, True)
    length = self.shape[dim]
    if among == "all":
        return OPERATORS["clone"](OPERATORS["narrow"](indices, dim, rank, 1), memory_format=_C.contiguous_format)
    if not self.dtype.is_floating_point:
        return OPERATORS["clone"](
            OPERATORS["narrow"](indices, dim, (length - 1) // 2, 1), memory_format=_C.contiguous_format
        )
    # NaN is sorted to the end, so the index of the first NaN is the number of numbers.
    numbers = _sum(OPERATORS["logical_not"](OPERATORS["isnan"](values)), dim, True)
    middle = OPERATORS["clamp"](OPERATORS["div"](numbers - 1, 2, rounding_mode="floor"), min=0)
    if among == "median":
        middle = _where(numbers < length, numbers, (length - 1) // 2)
    return OPERATORS["contiguous"](OPERATORS["gather"](indices, dim, middle))


@decomposes("_histc")
def _histc(self: Tensor, bins: int, low: float, high: float) -> Any:
    flat = reshape(self.detach(), -1)
    inside = (flat >= low) & (flat <= high)
    values = OPERATORS["masked_select"](flat, inside)
    if self.dtype in (_C.float16, _C.bfloat16):
        values = OPERATORS["_to_copy"](values, dtype=_C.float32)
    # As EqualBins in float_index.hpp: a power of two scales very wide or narrow ranges into the
    # dtype's range.
    width = high - low
    exponent = math.frexp(width)[1] if math.isfinite(width) else 1025
    usual, most = (900, 990) if self.dtype is _C.float64 else (64, 100)
    factor = 1.0 if abs(exponent) <= usual else 2.0 ** -builtins.max(-most, builtins.min(most, exponent))
    per_unit = bins / (high * factor - low * factor)
    places = OPERATORS["clamp"](((values * factor - low * factor) * per_unit).to(_C.int64), 0, bins - 1)
    return OPERATORS["scatter_add"](flat.new_zeros(bins), 0, places, flat.new_ones(places.numel()))


def _one_dimension(input: Tensor, dim: int, name: str) -> Any:
    """Return the tensor with at least one dimension, the wrapped dimension, and whether one was
    added.
    """
    dim = wrap_dim(dim, input.ndim)
    added = input.ndim == 0
    if added:
        input = reshape(input, 1)
    if input.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return input, dim, added


def _median(input: Tensor, dim: int, keepdim: Any, ignore_nan: bool, result_type: Any) -> Any:
    x, dim, added = _one_dimension(input, dim, result_type.__name__)
    position = OPERATORS["_kthvalue_index"](x, dim, 0, "nanmedian" if ignore_nan else "median")
    return _at(x, position, dim, keepdim and not added, result_type)


def _median_of_all(input: Tensor, ignore_nan: bool, result_type: Any) -> Tensor:
    """Return the median of all elements. The elements that are equal to it share its gradient."""
    x = reshape(input, -1)
    value: Tensor = _median(x, 0, False, ignore_nan, result_type).values
    if not ((x.requires_grad and _C.is_grad_enabled()) or is_differentiated_outside(x)):
        return value
    fixed = value.detach()
    equal = (x.detach() == fixed) | (OPERATORS["isnan"](x.detach()) & OPERATORS["isnan"](fixed))
    # amax shares the gradient. The sign keeps -inf apart from the filled elements.
    sign = OPERATORS["_to_copy"](_where(fixed < 0, -1, 1), dtype=x.dtype)
    shared: Tensor = OPERATORS["amax"](_where(equal, x * sign, -math.inf), (0,), False) * sign
    return shared


def _median_function(name: str, ignore_nan: bool, result_type: Any, text: str) -> Any:
    def median_function(
        input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
    ) -> Any:
        if dim is not None and not isinstance(dim, int):
            raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
        if dim is not None:
            _one_dimension(input, dim, name)
        if input.dtype is _C.bool and (input.numel() or dim is not None):
            raise NotImplementedError(
                f'"{name}" not implemented for candelabra.bool; convert with .to(candelabra.uint8)'
            )
        if dim is None:
            if input.numel() == 0:
                # NaN, and the integer that NaN is truncated to.
                nothing = OPERATORS["fill_"](input.new_empty((), dtype=_C.float64), float("nan"))
                return OPERATORS["_to_copy"](nothing, dtype=input.dtype)
            return _median_of_all(input, ignore_nan, result_type)
        result = _median(input, dim, keepdim, ignore_nan, result_type)
        if out is not None:
            result = result_type(*_C.give_to_outs(name, out, result, input))
        return result

    median_function.__name__ = median_function.__qualname__ = name
    median_function.__doc__ = f"""Return the median; of an even number of elements the lower of the middle two. {text}

    Parameters
    ----------
    input : Tensor
    dim : int, optional
        The dimension that is reduced; all elements without it.
    keepdim : bool
        Whether it stays, with size 1.
    out : pair of Tensor, optional
        Where values and indices are written.

    Returns
    -------
    Tensor or (values, indices)

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}(candelabra.tensor([3.0, 1.0, 2.0]))
    tensor(2.)
    """
    return function(out="exact whole")(median_function)


median = _median_function("median", False, return_types.median, "NaN where there is one.")
nanmedian = _median_function("nanmedian", True, return_types.nanmedian, "NaN is left out.")


@function(out="exact apart")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Tensor | None = None) -> Any:
    """Return the k-th smallest element along a dimension, counted from 1, and its index.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.kthvalue(candelabra.tensor([3, 1, 2]), 2).values
    tensor(2)
    """
    if input.dtype is _C.bool:
        raise NotImplementedError('"kthvalue" not implemented for candelabra.bool; convert with .to(candelabra.uint8)')
    x, dim, added = _one_dimension(input, dim, "kthvalue")
    if not 1 <= k <= x.shape[dim]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    position = OPERATORS["_kthvalue_index"](x, dim, k - 1, "all")
    result = _at(x, position, dim, keepdim and not added, return_types.kthvalue)
    if out is not None:
        result = return_types.kthvalue(*_C.give_to_outs("kthvalue", out, result, input))
    return result


@function(out="exact")
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Compute quantiles of all elements, or along a dimension.

    Parameters
    ----------
    input : Tensor
        Floating point.
    q : float or Tensor
        From 0 to 1; a one-dimensional tensor adds a dimension in front.
    dim : int, optional
        The dimension to reduce; without it, all elements.
    keepdim : bool
        Whether to keep it, with size 1.
    interpolation : str
        ``linear``, ``lower``, ``higher``, ``midpoint`` or ``nearest``, between two elements.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.quantile(candelabra.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not input.dtype.is_floating_point:
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if input.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    points = q if isinstance(q, _Tensor) else _C.tensor_from_data(q, input.dtype, input.device)
    if points.ndim > 1:
        raise RuntimeError(f"quantile() q must be a scalar or 1D tensor, but got a tensor with {points.ndim} dims")
    if points.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if any_holds(OPERATORS["logical_not"]((points >= 0) & (points <= 1))):  # NaN compares unequal to itself
        if not isinstance(q, _Tensor):
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    ndim = input.ndim
    x = reshape(input, -1) if dim is None else input
    axis = 0 if dim is None else wrap_dim(dim, ndim)
    x = OPERATORS["movedim"](x, axis, -1) if x.ndim else reshape(x, 1)
    values = OPERATORS["sort"](x, -1)[0]
    # NaN is sorted last, and makes every quantile of its slice NaN.
    last = OPERATORS["narrow"](values, -1, values.shape[-1] - 1, 1)
    rank = reshape(points, -1) * (values.shape[-1] - 1)
    if interpolation == "nearest":
        rank = OPERATORS["round"](rank)
    low, high = OPERATORS["floor"](rank), OPERATORS["ceil"](rank)
    # The dtype may round the last rank up to the length, or to infinity.
    positions = (OPERATORS["clamp"](end.to(_C.int64), 0, values.shape[-1] - 1) for end in (low, high))
    below, above = (OPERATORS["index_select"](values, -1, position) for position in positions)
    if interpolation == "higher":
        found = above
    elif interpolation in ("lower", "nearest"):
        found = below
    elif interpolation == "midpoint":
        found = OPERATORS["lerp"](below, above, 0.5)
    else:
        found = OPERATORS["lerp"](below, above, OPERATORS["expand"](rank - low, below.shape))
    found = _where(OPERATORS["isnan"](last), last, found)
    found = OPERATORS["movedim"](found, -1, 0)
    if keepdim:
        sizes = [1] * ndim if dim is None else [1 if i == axis else n for i, n in enumerate(input.shape)]
        found = reshape(found, (found.shape[0], *sizes))
    if points.ndim == 0:
        found = OPERATORS["select"](found, 0, 0)
    return found if out is None else _C.give_to_out("quantile", out, found)


@function(out="exact")
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Compute quantiles of the elements that are not NaN; see :func:`candelabra.quantile`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.nanquantile(candelabra.tensor([0.0, float("nan"), 2.0]), 0.5)
    tensor(1.)
    """
    # quantile checks the arguments and determines the shape.
    plain = quantile(OPERATORS["nan_to_num"](input), q, dim, True, interpolation=interpolation)
    points = q if isinstance(q, _Tensor) else _C.tensor_from_data(q, input.dtype, input.device)
    axis = 0 if dim is None else wrap_dim(dim, input.ndim)
    x = reshape(input, input.numel()) if dim is None else input
    x = OPERATORS["movedim"](x, axis, -1) if x.ndim else reshape(x, 1)
    values = OPERATORS["sort"](x, -1)[0]
    counts = _sum(OPERATORS["logical_not"](OPERATORS["isnan"](values)), -1, True)
    flat = reshape(points, points.numel())
    rank = flat * OPERATORS["clamp"](counts - 1, min=0)
    if interpolation == "nearest":
        rank = OPERATORS["round"](rank)
    low, high = OPERATORS["floor"](rank), OPERATORS["ceil"](rank)
    positions = (OPERATORS["clamp"](end.to(_C.int64), 0, values.shape[-1] - 1) for end in (low, high))
    below, above = (OPERATORS["gather"](values, -1, position) for position in positions)
    if interpolation == "higher":
        found = above
    elif interpolation in ("lower", "nearest"):
        found = below
    else:
        found = OPERATORS["lerp"](below, above, 0.5 if interpolation == "midpoint" else (rank - low).to(below.dtype))
    found = OPERATORS["movedim"](found, -1, 0)
    sizes = list(plain.shape) if points.ndim else [1, *plain.shape]
    found = reshape(found, sizes)
    if not keepdim:
        found = (
            reshape(found, sizes[:1])
            if dim is None
            else OPERATORS["squeeze"](found, axis + 1)
            if input.ndim
            else reshape(found, sizes[:1])
        )
    if points.ndim == 0:
        found = OPERATORS["select"](found, 0, 0)
    return found if out is None else _C.give_to_out("nanquantile", out, found)


@function(out="exact")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """Count the elements in equal intervals from `min` to `max`. If both are equal, the range is
    that of the elements.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.histc(candelabra.tensor([1.0, 2.0, 2.0, 9.0]), bins=3, min=0, max=3)
    tensor([0., 1., 2.])
    """
    if math.inf > min > max > -math.inf:
        raise RuntimeError("torch.histc: max must be larger than min")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"histc" not implemented for {input.dtype}; convert with .to(candelabra.float32)')
    if bins <= 0:
        raise RuntimeError(f"histc(): bins must be > 0, but got {bins}")
    flat = reshape(input.detach(), -1)
    low, high = float(min), float(max)
    if low == high and flat.numel() and not input.is_meta:
        low, high = float(OPERATORS["amin"](flat)), float(OPERATORS["amax"](flat))
    if low == high and math.isfinite(low):
        # At least a few steps of the dtype wide, so that the value is in the middle bin.
        limits = finfo(input.dtype)
        margin = builtins.max(1.0, math.ldexp(4 * limits.eps, math.frexp(low)[1]))
        low, high = builtins.max(low - margin, limits.min), builtins.min(high + margin, limits.max)
    if input.dtype in (_C.float16, _C.bfloat16) and builtins.max(abs(low), abs(high)) <= finfo(input.dtype).max:
        # The ends are compared in the dtype of the elements.
        ends = tuple(float(_C.tensor_from_data(end, input.dtype, input.device)) for end in (low, high))
        low, high = ends if ends[0] < ends[1] else (low, high)
    result = OPERATORS["_histc"](flat, bins, low, high)
    return result if out is None else _C.give_to_out("histc", out, result)
