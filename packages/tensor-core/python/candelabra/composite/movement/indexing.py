"""Indexing: gather, scatter and their relatives, in PyTorch's spellings."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import as_it_was
from ..movement.broadcasting import broadcast_shape
from ..movement.views import reshape, wrap_dim
from ..reduction.scan import cummax
from ..registration import decomposes, fallback, function, name_as
from ..transformed import all_values, any_holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device, Number

_index_select = OPERATORS["index_select"]
_gather = OPERATORS["gather"]
_where = OPERATORS["where"]


@decomposes("embedding")
def embedding(weight: Tensor, indices: Any, padding_idx: int = -1) -> Tensor:
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, but got {list(weight.shape)}")
    rows = _index_select(weight, 0, reshape(indices, indices.numel()))
    return OPERATORS["view"](rows, (*indices.shape, weight.shape[1]))


@decomposes("embedding_backward")
def embedding_backward(grad: Tensor, indices: Any, num_weights: int, padding_idx: int = -1) -> Tensor:
    rows = reshape(grad, (indices.numel(), grad.shape[-1]))
    flat = reshape(indices, indices.numel())
    if padding_idx >= 0:
        rows = _where(OPERATORS["unsqueeze"](OPERATORS["ne"](flat, padding_idx), 1), rows, 0)
    zeros = OPERATORS["fill_"](
        OPERATORS["empty"]((num_weights, grad.shape[-1]), dtype=grad.dtype, device=grad.device), 0
    )
    return OPERATORS["index_add"](zeros, 0, flat, rows)


# ---- where, nonzero


@fallback("where")
def _where_spellings(*arguments: Any, **names: Any) -> Any:
    # where(condition) returns indices; x.where(condition, other) comes as where(x, condition,
    # other) from the method below.
    if "self" in names:
        names["input"] = names.pop("self")
        return _where(*arguments, **names)
    if len(arguments) == 1 and not names:
        return nonzero_tuple(arguments[0])
    if not arguments and names.keys() == {"condition"}:
        return nonzero_tuple(names["condition"])
    return NotImplemented


@function(name="where", package=False)
def where_method(self: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """Select elements of this tensor where the condition holds, else of `other`.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0)
    tensor([0., 2.])
    """
    return _where(condition, self, other)


@fallback("nonzero")
def _nonzero_spellings(self: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    if as_tuple:
        return nonzero_tuple(self)
    if not isinstance(self, _C.Tensor):
        return NotImplemented
    made = OPERATORS["nonzero"](self)
    return made if out is None else _C.give_to_out("nonzero", out, made)


def nonzero_tuple(input: Tensor) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, one tensor per dimension."""
    if input.ndim == 0:
        input = reshape(input, 1)
    positions = OPERATORS["nonzero"](input)
    return tuple([OPERATORS["select"](positions, 1, d) for d in range(input.ndim)])


@function()
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the elements that are not zero, one row per element.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.argwhere(candelabra.tensor([0, 5]))
    tensor([[1]])
    """
    return OPERATORS["nonzero"](input)


# ---- fill

_index_fill = OPERATORS["index_fill"]


def _filled_by_tensor(self: Tensor, dim: int, index: Tensor, value: Any = None) -> Any:
    # A tensor of one element, which may require grad.
    if not (isinstance(self, _C.Tensor) and isinstance(value, _C.Tensor)):
        return NotImplemented
    if value.ndim != 0:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if value.dtype.is_complex and not self.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    axis = wrap_dim(dim, self.ndim)
    along = [self.shape[axis] if d == axis else 1 for d in range(self.ndim)]
    chosen = OPERATORS["fill_"](OPERATORS["empty"](along, dtype=_C.bool, device=self.device), False)
    return OPERATORS["masked_fill"](self, _index_fill(chosen, axis, index, True), value)


@fallback("index_fill")
def _index_fill_spellings(
    self: Tensor, dim: int, index: Tensor, value: Any = None, *, out: Tensor | None = None
) -> Any:
    made = _filled_by_tensor(self, dim, index, value)
    return made if out is None or made is NotImplemented else _C.give_to_out("index_fill", out, made)


def _index_fill_in_place(self: Tensor, dim: int, index: Tensor, value: Any = None) -> Any:
    made = _filled_by_tensor(self, dim, index, value)
    return made if made is NotImplemented else self.copy_(made)


_index_fill.inplace.fallback = _index_fill_in_place


# ---- gather and scatter


@fallback("gather")
def _gather_spellings(*arguments: Any, **names: Any) -> Any:
    # Gradients are always strided, even if a sparse one is requested.
    if names.pop("sparse_grad", None) is None:
        return NotImplemented
    return _gather(*arguments, **names)


@function(out="apart")
def take_along_dim(input: Tensor, indices: Any, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gather elements along a dimension by indices; other dimensions are broadcast.

    Parameters
    ----------
    input : Tensor
    indices : Tensor
        Of dtype int64.
    dim : int, optional
        The dimension; without it, `input` and `indices` are flattened.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([[3, 1], [2, 4]])
    >>> candelabra.take_along_dim(x, x.argsort(dim=1), dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if indices.dtype is not _C.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        input, indices, axis = reshape(input, -1), reshape(indices, -1), 0
    else:
        if input.ndim != indices.ndim:
            raise RuntimeError(
                f"take_along_dim(): input and indices should have the same number of dimensions, but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
            )
        axis = wrap_dim(dim, input.ndim)
        sizes = [
            None if d == axis else broadcast_shape((a,), (b,))[0]
            for d, (a, b) in enumerate(zip(input.shape, indices.shape))
        ]
        input = OPERATORS["expand"](input, [input.shape[d] if n is None else n for d, n in enumerate(sizes)])
        indices = OPERATORS["expand"](indices, [indices.shape[d] if n is None else n for d, n in enumerate(sizes)])
    indices = (
        OPERATORS["remainder"](indices, input.shape[axis]) if _has_negative(indices, input.shape[axis]) else indices
    )
    return _gather(input, axis, indices) if out is None else _gather(input, axis, indices, out=out)


def _has_negative(indices: Tensor, size: int) -> bool:
    """Return whether indices count from the end. gather rejects those out of range."""
    if not isinstance(indices, _C.Tensor) or indices.numel() == 0 or indices.dtype.is_floating_point or indices.is_meta:
        return False
    values = all_values(indices)
    minimum = int(OPERATORS["amin"](values))
    return -size <= minimum < 0 and int(OPERATORS["amax"](values)) < size


def _reduce_spelling(operator: Any, in_place: bool) -> Any:
    def respelled(
        self: Tensor,
        dim: int,
        index: Tensor,
        *arguments: Any,
        src: Tensor | None = None,
        value: Any = None,
        reduce: str | None = None,
        **names: Any,
    ) -> Any:
        out = names.pop("out", None)
        if out is not None:
            made = respelled(self, dim, index, *arguments, src=src, value=value, reduce=reduce, **names)
            return made if made is NotImplemented else _C.give_to_out("scatter", out, made)
        if names or len(arguments) > 1 or (reduce is None and value is None):
            return NotImplemented
        source = arguments[0] if arguments else src if src is not None else value
        if source is None:
            return NotImplemented
        if reduce is None:
            return operator(self, dim, index, source)
        if not isinstance(source, _C.Tensor):
            source = OPERATORS["fill_"](OPERATORS["empty"](index.shape, dtype=self.dtype, device=self.device), source)
        if reduce == "add":
            return (self.scatter_add_ if in_place else self.scatter_add)(dim, index, source)
        if reduce == "multiply":
            result = OPERATORS["scatter_reduce"](as_it_was(self) if in_place else self, dim, index, source, "prod")
            return self.copy_(result) if in_place else result
        raise RuntimeError(f"reduce argument must be either add or multiply, but got {reduce!r}")

    return name_as(respelled, operator.name)


for _operator in (OPERATORS["scatter"], OPERATORS["scatter"].inplace):
    _operator.fallback = _reduce_spelling(_operator, _operator is not OPERATORS["scatter"])


@decomposes("scatter_reduce")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if self.dtype is _C.bool:
        if reduce == "mean":
            raise NotImplementedError(
                '"scatter_reduce" with reduce="mean" is not implemented for bool; convert with .to(candelabra.float32)'
            )
        # Bools as 0 and 1.
        whole, source = (OPERATORS["_to_copy"](x, dtype=_C.uint8) for x in (self, src))
        made = scatter_reduce(
            whole, dim, index, source, "amax" if reduce in ("sum", "amax") else "amin", include_self=include_self
        )
        return OPERATORS["_to_copy"](made, dtype=_C.bool)
    axis = wrap_dim(dim, self.ndim)
    for at, size in enumerate(index.shape if src.shape != index.shape else ()):
        src = OPERATORS["narrow"](src, at, 0, size)
    if reduce in ("sum", "mean"):
        base = self if include_self else OPERATORS["scatter"](self, axis, index, 0)
        total = OPERATORS["scatter_add"](base, axis, index, src)
        if reduce == "sum":
            return total
        zeros = OPERATORS["fill_"](
            OPERATORS["empty"](self.shape, dtype=self.dtype, device=self.device), int(include_self)
        )
        ones = OPERATORS["fill_"](OPERATORS["empty"](index.shape, dtype=self.dtype, device=self.device), 1)
        count = OPERATORS["scatter_add"](zeros, axis, index, ones)
        count = OPERATORS["masked_fill"](count, OPERATORS["eq"](count, 0), 1)
        exact = self.dtype.is_floating_point or self.dtype.is_complex
        return OPERATORS["div"](total, count, rounding_mode=None if exact else "floor")
    return _reduced_by_rank(self, axis, index, src, reduce, include_self)


def _reduced_by_rank(input: Tensor, axis: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Scatter in rounds, so that each round writes every index once: round k handles the k-th
    source of each index.
    """
    if index.numel() == 0:
        return OPERATORS["clone"](input)
    if index.ndim == 0:
        return reshape(
            _reduced_by_rank(reshape(input, 1), 0, reshape(index, 1), reshape(src, 1), reduce, include_self), ()
        )
    combine = {"amax": OPERATORS["maximum"], "amin": OPERATORS["minimum"], "prod": OPERATORS["mul"]}[reduce]
    ordered, order = OPERATORS["sort"](index, axis, False, True)
    length = index.shape[axis]
    places = OPERATORS["arange"](0, length, 1, dtype=_C.int64, device=index.device)
    places = places.view([length if d == axis else 1 for d in range(index.ndim)])
    # The rank within a run of equal indices: the position minus the start of the run.
    earlier, later = (OPERATORS["narrow"](ordered, axis, start, length - 1) for start in (0, 1))
    starts = _where(OPERATORS["ne"](earlier, later), OPERATORS["narrow"](places, axis, 1, length - 1), 0)
    head = starts.new_zeros([1 if d == axis else n for d, n in enumerate(index.shape)])
    rank = places - cummax(OPERATORS["cat"]([head, starts], axis), axis).values
    result = input
    sources = _gather(src, axis, order)
    touched = OPERATORS["fill_"](OPERATORS["empty"](input.shape, dtype=_C.bool, device=input.device), include_self)
    for k in range(int(OPERATORS["amax"](all_values(rank))) + 1):
        chosen = OPERATORS["eq"](rank, k)
        here = OPERATORS["fill_"](OPERATORS["empty"](input.shape, dtype=input.dtype, device=input.device), 0)
        hit = OPERATORS["scatter_add"](here, axis, ordered, chosen.to(input.dtype)) > 0
        value = OPERATORS["scatter_add"](here, axis, ordered, _where(chosen, sources, 0))
        result = _where(hit, _where(touched, combine(result, value), value), result)
        touched = touched | hit
    return result


@function(out="exact whole")
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Combine slices of `source` with those of `input` at indices of a dimension.

    Parameters
    ----------
    input : Tensor
    dim : int
        The dimension.
    index : Tensor
        Of dtype int64 or int32 and one dimension.
    source : Tensor
        Of the sizes of `input`, except in `dim`, where its size is the length of `index`.
    reduce : str
        ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    include_self : bool
        Whether to include the slices of `input`.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.index_reduce(candelabra.ones(2), 0, candelabra.tensor([0, 0]), candelabra.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if input.dtype is _C.bool and not include_self:
        raise NotImplementedError(
            '"index_reduce" with include_self=False is not implemented for bool; convert with .to(candelabra.uint8)'
        )
    axis = wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_reduce(): Index is supposed to be a vector, but got dim: {index.ndim}")
    if index.dtype not in (_C.int64, _C.int32):
        raise IndexError(f"index_reduce(): Expected dtype int32/int64 for index, but got {index.dtype}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_reduce(): self and source expected to have the same dtype, but got (self) {input.dtype} and (source) {source.dtype}"
        )
    places = OPERATORS["_to_copy"](reshape(index, index.numel()), dtype=_C.int64)
    size = input.shape[axis] if input.ndim else 1
    if (
        places.numel()
        and not places.is_meta
        and not 0 <= int(OPERATORS["amin"](all_values(places))) <= int(OPERATORS["amax"](all_values(places))) < size
    ):
        raise IndexError(f"index_reduce(): index out of range in self, whose dimension {axis} has size {size}")
    shape = [places.shape[0] if d == axis else 1 for d in range(max(source.ndim, 1))]
    whole = source if source.ndim else reshape(source, 1)
    grid = OPERATORS["expand"](reshape(places, shape), whole.shape)
    base = input if input.ndim else reshape(input, 1)
    made = OPERATORS["scatter_reduce"](base, axis, grid, whole, reduce, include_self=include_self)
    made = made if input.ndim else reshape(made, ())
    return made if out is None else _C.give_to_out("index_reduce", out, made, input, source)


@function(package=False)
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine slices in place; see :func:`candelabra.index_reduce`."""
    return self.copy_(index_reduce(as_it_was(self), dim, index, source, reduce, include_self=include_self))


@function()
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """Return a fixed number of indices of nonzero elements, truncated or padded.

    Parameters
    ----------
    input : Tensor
    size : int
        The number of rows of the result.
    fill_value : int
        The value of padding rows.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.nonzero_static(candelabra.tensor([0, 5, 6]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = input.new_empty((0, input.ndim), dtype=_C.int64) if input.is_meta else OPERATORS["nonzero"](input)
    found = OPERATORS["narrow"](found, 0, 0, min(size, found.shape[0]))
    missing = OPERATORS["fill_"](
        OPERATORS["empty"]((size - found.shape[0], found.shape[1]), dtype=_C.int64, device=input.device), fill_value
    )
    made = OPERATORS["cat"]([found, missing])
    return made if out is None else _C.give_to_out("nonzero_static", out, made)


@function()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return a copy of `input` with `src` embedded at an index of a dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.select_scatter(candelabra.zeros(2, 2), candelabra.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    result = OPERATORS["clone"](input)
    OPERATORS["select"](result, dim, index).copy_(src)
    return result


@function(out="exact")
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Number | None = None,
    end: Number | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy of `input` with `src` embedded in a slice of a dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.slice_scatter(candelabra.zeros(3), candelabra.ones(2), 0, 1)
    tensor([0., 1., 1.])
    """
    result = OPERATORS["clone"](input)
    OPERATORS["slice"](result, dim, start, end, step).copy_(src)
    return result if out is None else _C.give_to_out("slice_scatter", out, result)


@function()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of `input` with `src` embedded in a diagonal.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.diagonal_scatter(candelabra.zeros(2, 2), candelabra.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    result = OPERATORS["clone"](input)
    OPERATORS["diagonal"](result, offset, dim1, dim2).copy_(src)
    return result


@function(package=False)
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write elements at indices of the flattened tensor."""
    if index.numel() != source.numel():
        raise RuntimeError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    if type(self) is _C.Tensor and not self.requires_grad and not source.requires_grad and self.is_contiguous():
        OPERATORS["index_put"].inplace(reshape(self, -1), [reshape(index, -1)], reshape(source, -1), accumulate)
        return self
    flat = reshape(self, -1)
    changed = OPERATORS["index_put"](flat, [reshape(index, -1)], reshape(source, -1), accumulate)
    return self.copy_(reshape(changed, self.shape))


@function(method=False)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: dtype | None = None, device: Device = None, layout: Any = None
) -> Tensor:
    """Return the indices of the lower triangle of a matrix: of their rows, and of their columns.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices(row, col, offset, dtype, device, False)


@function(method=False)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: dtype | None = None, device: Device = None, layout: Any = None
) -> Tensor:
    """Return the indices of the upper triangle of a matrix: of their rows, and of their columns.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices(row, col, offset, dtype, device, True)


def _triangle_indices(row: int, col: int, offset: int, dtype: dtype | None, device: Device, upper: bool) -> Tensor:
    kind = dtype if dtype is _C.int32 else _C.int64
    try:
        positions = OPERATORS["_tril_triu_indices"](row, col, offset, upper, dtype=kind, device=device)
    except TypeError as error:
        raise TypeError(str(error).replace("_tril_triu_indices", "triu_indices" if upper else "tril_indices")) from None
    return positions if dtype is None or dtype is kind else positions.to(dtype)


@decomposes("_tril_triu_indices")
def _tril_triu_indices(
    rows: int, columns: int, offset: int, upper: bool, *, dtype: dtype, device: Device = None
) -> Tensor:
    if rows < 0 or columns < 0:
        raise RuntimeError(f"row and col must be non-negative, got {rows} and {columns}")
    if dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"_tril_triu_indices(): dtype must be int32 or int64, but got {dtype}")
    # In a narrow dtype if it holds all indices: the comparison has as many elements as the matrix.
    number = _C.int32 if max(rows, columns) + abs(offset) < 2**31 else _C.int64
    row = OPERATORS["unsqueeze"](OPERATORS["arange"](0, rows, 1, dtype=number, device=device), 1)
    column = OPERATORS["sub"](OPERATORS["arange"](0, columns, 1, dtype=number, device=device), offset)
    inside = OPERATORS["ge" if upper else "le"](column, row)
    places = reshape(OPERATORS["nonzero"](reshape(inside, -1)), -1)
    positions = OPERATORS["empty"]((2, places.numel()), dtype=_C.int64, device=device)
    if places.numel():
        OPERATORS["floor_divide"](places, columns, out=OPERATORS["select"](positions, 0, 0))
        OPERATORS["remainder"](places, columns, out=OPERATORS["select"](positions, 0, 1))
    return positions if dtype is _C.int64 else positions.to(dtype)


@function()
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of `input` with elements written at indices of the flattened tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.put(candelabra.zeros(2, 2), candelabra.tensor([3]), candelabra.tensor([5.0]))
    tensor([[0., 0.],
            [0., 5.]])
    """
    return put_(OPERATORS["clone"](input), index, source, accumulate)


@function(method=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Convert indices of the flattened tensor into indices of each dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unravel_index(candelabra.tensor([3, 5]), (2, 3))
    (tensor([1, 1]), tensor([0, 2]))
    """
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, _C.Tensor) or not (isinstance(shape, int) or hasattr(shape, "__len__")):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes, total = (shape,) if isinstance(shape, int) else tuple(shape), 1
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
        if n < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
        total *= n
    whole = indices.to(_C.int64)
    if indices.numel() and any_holds((whole < 0) | (whole >= total)):
        raise ValueError(f"unravel_index(): an index is out of bounds for shape {list(sizes)}")
    positions = []
    for n in reversed(sizes):
        positions.append(OPERATORS["remainder"](whole, n))
        whole = OPERATORS["div"](whole, n, rounding_mode="floor")
    return tuple(reversed(positions))
