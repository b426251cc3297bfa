"""Reductions composed of operators, and PyTorch's other spellings of reduction operators."""

from __future__ import annotations

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS

from ..creation.creation import sizes_of
from ..elementwise.elementwise import as_it_was, narrow_to, wide
from ..movement.views import reshape, wrap_dim
from ..registration import decomposes, fallback, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Number

_Tensor = _C.Tensor
_sum = OPERATORS["sum"]
_where = OPERATORS["where"]


# ---- other spellings

_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def renamed(names: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords with NumPy's names replaced by PyTorch's."""
    return {_NUMPY_NAMES.get(name, name): value for name, value in names.items()}


def _unbiased_spelling(operator: Any) -> Any:
    # var(unbiased), var(dim, unbiased, keepdim), and unbiased= instead of correction=.
    def respelled(self: Tensor, *arguments: Any, **names: Any) -> Any:
        names = renamed(names)
        by_position = ("unbiased",) if arguments and isinstance(arguments[0], bool) else ("dim", "unbiased", "keepdim")
        given = dict(zip(by_position, arguments))
        if len(arguments) > len(by_position) or given.keys() & names.keys():
            return NotImplemented
        given.update(names)
        if "unbiased" not in given or "correction" in given:
            return NotImplemented
        given["correction"] = int(bool(given.pop("unbiased")))
        return operator(self, **given)

    return respelled


for _name in ("var", "std"):
    fallback(_name)(_unbiased_spelling(OPERATORS[_name]))


def _none_for_all(operator: Any) -> Any:
    # amax(dim=None) reduces all dimensions.
    def respelled(self: Tensor, *arguments: Any, **names: Any) -> Any:
        names = renamed(names)
        given = dict(zip(("dim", "keepdim"), arguments))
        if len(arguments) > 2 or given.keys() & names.keys():
            return NotImplemented
        given.update(names)
        if given.get("dim", ()) is not None:
            return NotImplemented
        return operator(self, **{**given, "dim": ()})

    respelled.is_deprecated = True  # type: ignore[attr-defined]  # the stubs keep the documented signature
    return respelled


for _name in ("amax", "amin"):
    fallback(_name)(_none_for_all(OPERATORS[_name]))


@decomposes("logsumexp")
def logsumexp(self: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    x, is_complex = wide(self), self.dtype.is_complex
    if not (x.dtype.is_floating_point or is_complex):
        x = narrow_to(x, _C.get_default_dtype())
    if x.numel():
        real = OPERATORS["select"](OPERATORS["view_as_real"](x), -1, 0) if is_complex else x
        largest = OPERATORS["amax"](real, dim, True).detach()
        largest = OPERATORS["masked_fill"](largest, OPERATORS["isinf"](largest), 0)
        result = OPERATORS["log"](_sum(OPERATORS["exp"](x - largest), dim, True)) + largest
        if not keepdim:
            result = OPERATORS["squeeze"](result, dim) if _listed(dim) else reshape(result, ())
    else:
        result = OPERATORS["log"](_sum(OPERATORS["exp"](x), dim, keepdim))
    return narrow_to(result, self.dtype if self.dtype.is_floating_point else x.dtype)


def _listed(dim: int) -> bool:
    return isinstance(dim, int) or len(dim) > 0


# ---- maxima and minima


def _extremum(name: str, elementwise: Any, whole: Any, with_indices: Any, result_type: Any) -> Any:
    def extremum(
        input: Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        other: Tensor | Number | None = None,
        out: Tensor | None = None,
        **names: Any,
    ) -> Any:
        if names:
            names = renamed(names)
            dim, keepdim = names.pop("dim", dim), names.pop("keepdim", keepdim)
            if names:
                raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(names))}'")
        if isinstance(dim, _Tensor) or other is not None:
            other = dim if other is None else other
            return elementwise(input, other) if out is None else elementwise(input, other, out=out)
        if dim is None:
            if input.numel() == 0:
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
                )
            return whole(input) if out is None else whole(input, out=out)
        result = with_indices(input, dim, keepdim)
        if out is not None:
            result = _C.give_to_outs(name, out, result, input)
        return result_type(*result)

    extremum.__name__ = extremum.__qualname__ = name
    word = {"max": "largest", "min": "smallest"}[name]
    shown = {"max": (5, 1), "min": (1, 0)}[name]
    extremum.__doc__ = f"""Return the {word} element, the {word} along a dimension, or the {word} of two tensors.

    Called as ``{name}(input)``, ``{name}(input, dim, keepdim=False)`` or ``{name}(input, other)``.

    Parameters
    ----------
    input : Tensor
    dim : int, optional
        The dimension that is reduced.
    keepdim : bool
        Whether the reduced dimension stays, with size 1.
    other : Tensor, optional
        Compared elementwise with `input`, as {name}imum does.
    out : Tensor or pair of Tensor, optional
        Where the result is written.

    Returns
    -------
    Tensor or (values, indices)
        With `dim`: the values and their positions, the first among equals. NaN counts as the {word}.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}(candelabra.tensor([1, 5, 3]))
    tensor({shown[0]})
    >>> candelabra.{name}(candelabra.tensor([1, 5, 3]), 0).indices
    tensor({shown[1]})
    """
    return function(out="exact whole")(extremum)


max_ = _extremum("max", OPERATORS["maximum"], OPERATORS["amax"], OPERATORS["max_with_indices"], return_types.max)
min_ = _extremum("min", OPERATORS["minimum"], OPERATORS["amin"], OPERATORS["min_with_indices"], return_types.min)


@decomposes("_aminmax")
def _aminmax(self: Tensor, dim: Any = (), keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return OPERATORS["amin"](self, dim, keepdim), OPERATORS["amax"](self, dim, keepdim)


@function(out="exact whole")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Tensor | None = None) -> Any:
    """Return the minimum and the maximum, of all elements or along a dimension.

    Examples
    --------
    >>> import candelabra
    >>> low, high = candelabra.aminmax(candelabra.tensor([3, 1, 2]))
    >>> low, high
    (tensor(1), tensor(3))
    """
    if dim is not None and not isinstance(dim, int):
        raise TypeError(f"aminmax(): argument 'dim' must be int, not {type(dim).__name__}")
    if input.numel() == 0 and dim is None:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    _check_dims(dim, input.ndim)
    dims = () if dim is None else dim
    low, high = OPERATORS["_aminmax"](input, dims, keepdim)
    if out is not None:
        low, high = _C.give_to_outs("aminmax", out, (low, high), input)
    return return_types.aminmax(low, high)


# ---- sums and moments


def _check_dims(dim: Any, ndim: int) -> None:
    """Raise for invalid dimensions, before other errors."""
    for one in () if dim is None else (dim,) if isinstance(dim, int) else dim:
        wrap_dim(one, ndim)


@function()
def nansum(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Sum elements, with NaN as zero.

    Parameters
    ----------
    input : Tensor
    dim : int or sequence of int, optional
        The dimensions to reduce; all by default.
    keepdim : bool
        Whether to keep them, with size 1.
    dtype : dtype, optional
        The dtype of the computation.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.nansum(candelabra.tensor([1.0, float("nan")]))
    tensor(1.)
    """
    _check_dims(dim, input.ndim)
    if input.dtype.is_complex:
        raise RuntimeError("nansum does not support complex inputs; sum the real and the imaginary parts instead")
    if out is not None and input.dtype.is_floating_point and not out.dtype.is_floating_point:
        raise NotImplementedError(f'"nansum_cpu" not implemented for {out.dtype}')
    names: dict[str, Any] = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    if not input.dtype.is_floating_point:  # integers are never NaN
        return _sum(input, dim, keepdim, **names)
    if dtype is not None and not dtype.is_floating_point:
        return _sum(OPERATORS["masked_fill"](input, OPERATORS["isnan"](input), 0), dim, keepdim, **names)
    return OPERATORS["_nansum"](input, dim, keepdim, **names)


@decomposes("_nansum")
def _nansum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Any:
    return _sum(OPERATORS["masked_fill"](self, OPERATORS["isnan"](self), 0), dim, keepdim, dtype=dtype)


@function()
def nanmean(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the mean of the elements that are not NaN; arguments as in :func:`candelabra.nansum`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.nanmean(candelabra.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype}; convert with .to(candelabra.float32)"
        )
    _check_dims(dim, input.ndim)
    if input.dtype.is_complex:
        raise RuntimeError("nanmean does not support complex inputs; average the real and the imaginary parts instead")
    missing = OPERATORS["isnan"](input)
    count = _sum(OPERATORS["logical_not"](missing), dim, keepdim)
    result = _sum(OPERATORS["masked_fill"](input, missing, 0), dim, keepdim, dtype=dtype) / count
    return result if out is None else _C.give_to_out("nanmean", out, result)


def _var_mean_arguments(arguments: Any, names: dict[str, Any]) -> Any:
    """Return dim, correction and keepdim of PyTorch's spellings of var_mean and std_mean."""
    given = dict(names)
    if arguments and isinstance(arguments[0], bool):
        given["unbiased"], arguments = arguments[0], arguments[1:]
    given.update(zip(("dim", "unbiased", "keepdim"), arguments))
    given = renamed(given)
    dim, keepdim = given.pop("dim", None), given.pop("keepdim", False)
    correction = given.pop("correction", None)
    unbiased = given.pop("unbiased", None)
    if given:
        raise TypeError(f"got an unexpected keyword argument '{next(iter(given))}'")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, correction, keepdim


@function()
def var_mean(input: Tensor, *arguments: Any, **names: Any) -> Any:
    """Return variance and mean, of all elements or along dimensions.

    Called as ``var_mean(input, dim=None, *, correction=1, keepdim=False)``.

    Parameters
    ----------
    input : Tensor
    dim : int or sequence of int, optional
        The dimensions to reduce; all by default.
    correction : number
        The divisor of the sum of squares is the number of elements minus this.
    keepdim : bool
        Whether to keep the dimensions, with size 1.

    Returns
    -------
    (Tensor, Tensor)

    Examples
    --------
    >>> import candelabra
    >>> candelabra.var_mean(candelabra.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction, keepdim = _var_mean_arguments(arguments, names)
    return OPERATORS["var"](input, dim, correction=correction, keepdim=keepdim), OPERATORS["mean"](input, dim, keepdim)


@function()
def std_mean(input: Tensor, *arguments: Any, **names: Any) -> Any:
    """Return standard deviation and mean; arguments as in :func:`candelabra.var_mean`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.std_mean(candelabra.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction, keepdim = _var_mean_arguments(arguments, names)
    return OPERATORS["std"](input, dim, correction=correction, keepdim=keepdim), OPERATORS["mean"](input, dim, keepdim)


@decomposes("count_nonzero")
def count_nonzero(self: Tensor, dim: Any = None) -> Any:
    return _sum(OPERATORS["ne"](self, 0), dim)


# ---- norms


@function(out="exact")
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute a vector norm of all elements, or along dimensions.

    Parameters
    ----------
    input : Tensor
        Floating point or complex.
    p : number or str
        The order; ``"fro"`` is 2.
    dim : int or sequence of int, optional
        The dimensions to reduce; all by default.
    keepdim : bool
        Whether to keep them, with size 1.
    dtype : dtype, optional
        The dtype of the computation.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        ``(sum |x|^p)^(1/p)``, with infinity and 0 as limits.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.norm(candelabra.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if p in ("fro", None):
        p = 2
    elif isinstance(p, str):
        if p == "nuc":
            from candelabra.linalg import matrix_norm

            return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
        try:
            p = float(p)
        except ValueError:
            raise ValueError(f"norm(): p must be a number, 'fro' or 'nuc', but got '{p}'") from None
    vector_norm = OPERATORS["linalg_vector_norm"]
    return (
        vector_norm(input, p, dim, keepdim, dtype=dtype)
        if out is None
        else vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    )


@function()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Compute the p-norm of the difference of two tensors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.dist(candelabra.tensor([0.0, 0.0]), candelabra.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return OPERATORS["linalg_vector_norm"](input - other, p)


@function(out="exact whole")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """Scale slices along a dimension down to the norm `maxnorm` if theirs is larger.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.renorm(candelabra.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    axis = wrap_dim(dim, input.ndim)
    norms = OPERATORS["linalg_vector_norm"](input, p, [d for d in range(input.ndim) if d != axis], True)
    # As in PyTorch, a small epsilon keeps the rounded result below the limit.
    result = input * _where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return result if out is None else _C.give_to_out("renorm", out, result, input)


@function(package=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over dimensions, so that the result has the given size, which broadcasts to this
    tensor's.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, 3).sum_to_size(3)
    tensor([2., 2., 2.])
    """
    wanted = tuple(sizes_of(size))
    extra = self.ndim - len(wanted)
    if extra < 0 or any(n not in (1, m) for n, m in zip(wanted, self.shape[extra:])):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
    dims = [*range(extra), *(d for d, n in enumerate(wanted, extra) if n == 1 and self.shape[d] != 1)]
    if not wanted:
        return _sum(self)
    return reshape(_sum(self, dims, True), wanted) if dims else self


@function(package=False)
def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Compute :func:`candelabra.renorm` in place."""
    return self.copy_(renorm(as_it_was(self), p, dim, maxnorm))
