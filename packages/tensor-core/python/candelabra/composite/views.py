"""Other shapes on the same memory, made of the views of the core; a copy only where no view can be."""

from __future__ import annotations

import operator as python_operator
from functools import reduce
from itertools import pairwise

from candelabra import _C
from candelabra.catalogue import OPERATORS

from .creation import sizes_of
from .registration import fallback, function, tensor_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from candelabra._C import Tensor, dtype

_view = OPERATORS["view"]
_permute = OPERATORS["permute"]
_transpose = OPERATORS["transpose"]
_expand = OPERATORS["expand"]
_slice = OPERATORS["slice"]
_select = OPERATORS["select"]
_narrow = OPERATORS["narrow"]
_clone = OPERATORS["clone"]


def wrap_dim(dim: int, ndim: int) -> int:
    """Return a dimension counted from the front; a tensor without dimensions counts as having one."""
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim + limit if dim < 0 else dim


# ---- reshaping


@function()
def reshape(input: Tensor, *shape: Any, **names: Any) -> Tensor:
    """Give the elements another shape: a view where the strides allow it, else a copy.

    Parameters
    ----------
    input : Tensor
    *shape : int or sequence of int
        The new sizes; one may be -1 and follows from the others.

    Returns
    -------
    Tensor
        With the elements of `input` in row-major order.

    Raises
    ------
    RuntimeError
        Where the number of elements differs.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.reshape(candelabra.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    if names:
        shape = (names.pop("shape"),) if "shape" in names and not shape else shape
        if names:
            raise TypeError(f"reshape() got an unexpected keyword argument '{next(iter(names))}'")
    wanted = sizes_of(shape)
    if input.is_contiguous():
        return _view(input, wanted)
    wanted = _inferred(wanted, input.numel())
    if _can_view(input.shape, input.stride(), wanted):
        return _view(input, wanted)
    return _view(_clone(input, memory_format=_C.contiguous_format), wanted)


def _can_view(sizes: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> bool:
    """Tell whether strides exist that give elements of these sizes and strides the wanted sizes of as many elements."""
    old = [(n, step) for n, step in zip(sizes, strides) if n != 1]
    if any(n == 0 for n, _ in old):
        return True
    # From the back: runs of old dimensions without gaps, each of which the wanted sizes must make up exactly.
    position = len(wanted) - 1
    while old:
        run, step = old.pop()
        expected = run * step
        while old and old[-1][1] == expected:
            run *= old[-1][0]
            expected *= old.pop()[0]
        made = 1
        while made < run and position >= 0:
            made *= wanted[position]
            position -= 1
        if made != run:
            return False
    return True


def _inferred(shape: Sequence[int], numel: int) -> list[int]:
    sizes = [python_operator.index(n) for n in shape]
    unknown = [i for i, n in enumerate(sizes) if n < 0]
    known = reduce(python_operator.mul, (n for n in sizes if n >= 0), 1)
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if unknown:
        if sizes[unknown[0]] != -1:
            raise RuntimeError(f"invalid shape dimension {sizes[unknown[0]]}")
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of {numel} elements into shape {sizes} because the unspecified dimension size -1 can be any "
                "value and is ambiguous"
            )
        if numel % known:
            raise RuntimeError(f"shape '{sizes}' is invalid for input of size {numel}")
        sizes[unknown[0]] = numel // known
    elif known != numel:
        raise RuntimeError(f"shape '{sizes}' is invalid for input of size {numel}")
    return sizes


@fallback("view")
def _view_spellings(self: Tensor, *arguments: Any, dtype: dtype | None = None, **names: Any) -> Any:
    if dtype is None and len(arguments) == 1 and isinstance(arguments[0], _C.dtype):
        dtype, arguments = arguments[0], ()
    if dtype is not None and not arguments and not names:
        return OPERATORS["view_dtype"](self, dtype)
    return NotImplemented


@function(package=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Give the elements the shape of another tensor; see :func:`candelabra.reshape`."""
    return reshape(self, other.shape)


@function(package=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View the elements in the shape of another tensor."""
    return _view(self, other.shape)


@function(package=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of another tensor, without a copy."""
    return _expand(self, other.shape)


@function()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Make one dimension of several adjacent ones.

    Parameters
    ----------
    input : Tensor
    start_dim, end_dim : int
        The first and last of them; all by default.

    Returns
    -------
    Tensor
        A view where the strides allow it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.flatten(candelabra.ones(2, 3, 4), 1).shape
    candelabra.Size([2, 12])
    """
    if start_dim == 0 and end_dim == -1 and input.is_contiguous():
        return _view(input, (input.numel(),)) if input.ndim != 1 else input
    ndim = input.ndim
    first, last = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return _view(input, (1,))
    if first == last:
        return input
    shape = input.shape
    return reshape(input, (*shape[:first], reduce(python_operator.mul, shape[first : last + 1], 1), *shape[last + 1 :]))


@function()
def ravel(input: Tensor) -> Tensor:
    """Make a tensor one-dimensional: a view where the strides allow it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ravel(candelabra.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    return reshape(input, -1)


# ---- exchanging dimensions


@function(aliases=("swapdims",))
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions; the same as :func:`candelabra.transpose`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.swapaxes(candelabra.ones(2, 3), 0, 1).shape
    candelabra.Size([3, 2])
    """
    return _transpose(input, axis0, axis1)


def _become(self: Tensor, view: Tensor, name: str) -> Tensor:
    """Give this tensor the geometry of a view of it."""
    if self.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(f"{name}_(): the shape of a tensor that requires grad can't be changed in place; use {name}()")
    self.data = view
    return self


@function(package=False, aliases=("swapdims_", "transpose_"))
def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions of this tensor in place."""
    return _become(self, _transpose(self.detach(), axis0, axis1), "transpose")


@function()
def moveaxis(input: Tensor, source: Tensor, destination: Any) -> Tensor:
    """Move dimensions to other places; the same as :func:`candelabra.movedim`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.moveaxis(candelabra.ones(2, 3, 4), 0, -1).shape
    candelabra.Size([3, 4, 2])
    """
    return OPERATORS["movedim"](input, source, destination)


@tensor_property
def T(self: Tensor) -> Tensor:
    """The tensor with its dimensions in reverse order."""
    return _transpose(self, 0, 1) if self.ndim == 2 else _permute(self, range(self.ndim - 1, -1, -1))


@tensor_property
def mT(self: Tensor) -> Tensor:
    """The tensor with its last two dimensions exchanged."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return _transpose(self, -2, -1)


@tensor_property
def H(self: Tensor) -> Tensor:
    """The conjugate of the transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return adjoint(self) if self.ndim else self.conj()


@tensor_property
def mH(self: Tensor) -> Tensor:
    """The conjugate of the tensor with its last two dimensions exchanged."""
    return adjoint(self)


@function()
def adjoint(input: Tensor) -> Tensor:
    """Exchange the last two dimensions and take the complex conjugate.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.adjoint(candelabra.tensor([[1j, 2]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor.")
    return _transpose(input, -2, -1).conj()


# ---- parts of complex numbers


def _get_real(self: Tensor) -> Tensor:
    """The real part: a view for a complex tensor, the tensor itself for a real one."""
    return _select(OPERATORS["view_as_real"](self), -1, 0) if self.dtype.is_complex else self


def _get_imag(self: Tensor) -> Tensor:
    """The imaginary part, a view."""
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _select(OPERATORS["view_as_real"](self), -1, 1)


def _part_setter(get: Callable[[Tensor], Tensor]) -> Any:
    def set_part(self: Tensor, value: Any) -> None:
        get(self)[...] = value

    return set_part


def _publish_parts() -> None:
    from .registration import PROPERTIES

    PROPERTIES["real"] = property(_get_real, _part_setter(_get_real), doc=_get_real.__doc__)
    PROPERTIES["imag"] = property(_get_imag, _part_setter(_get_imag), doc=_get_imag.__doc__)


_publish_parts()


@function(method=False)
def real(input: Tensor) -> Tensor:
    """Return the real part: a view for a complex tensor, `input` itself for a real one.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.real(candelabra.tensor([1 + 2j]))
    tensor([1.])
    """
    return _get_real(input)


@function(method=False)
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part of a complex tensor, a view.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.imag(candelabra.tensor([1 + 2j]))
    tensor([2.])
    """
    return _get_imag(input)


# ---- taking apart


@function()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Take a tensor apart along a dimension.

    Parameters
    ----------
    input : Tensor
    dim : int
        The dimension that is removed.

    Returns
    -------
    tuple of Tensor
        One view a position.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unbind(candelabra.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, input.ndim)
    return tuple([_select(input, dim, i) for i in range(input.shape[dim])])


@function()
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, **names: Any) -> tuple[Tensor, ...]:
    """Split into parts of a given size, or of given sizes.

    Parameters
    ----------
    tensor : Tensor
    split_size_or_sections : int or sequence of int
        The size of each part (the last may be smaller), or one size a part.
    dim : int
        The dimension that is split.

    Returns
    -------
    tuple of Tensor
        Views.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.split(candelabra.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if names:
        split_size_or_sections = names.pop("split_size", split_size_or_sections)
        if names:
            raise TypeError(f"split() got an unexpected keyword argument '{next(iter(names))}'")
    if split_size_or_sections is None:
        raise TypeError("split() missing 1 required argument: 'split_size_or_sections'")
    if not hasattr(split_size_or_sections, "__index__"):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    size = python_operator.index(split_size_or_sections)
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    dim = wrap_dim(dim, tensor.ndim)
    length = tensor.shape[dim]
    if size == 0:
        if length:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
        return (OPERATORS["alias"](tensor),)
    return tuple([_narrow(tensor, dim, i, min(size, length - i)) for i in range(0, max(length, 1), size)])


@function()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split into parts of given sizes; see :func:`candelabra.split`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.split_with_sizes(candelabra.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, input.ndim)
    sizes = [python_operator.index(n) for n in split_sizes]
    length = input.shape[dim]
    if sum(sizes) != length or any(n < 0 for n in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={sizes}"
        )
    parts, start = [], 0
    for size in sizes:
        parts.append(_narrow(input, dim, start, size))
        start += size
    return tuple(parts)


@function()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into at most `chunks` parts of equal size, the last possibly smaller.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.chunk(candelabra.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = input.shape[wrap_dim(dim, input.ndim)]
    size = -(-length // chunks)
    if size == 0:
        return split_with_sizes(input, [0] * chunks, dim)
    return split(input, size, dim)


@function()
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Split into a number of parts as equal as can be, or before given positions.

    Parameters
    ----------
    input : Tensor
    indices_or_sections : int or sequence of int
        The number of parts; or the positions where parts begin.
    dim : int
        The dimension that is split.

    Returns
    -------
    tuple of Tensor
        Views.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor_split(candelabra.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if indices_or_sections is None:
        indices_or_sections = sections if indices is None else indices
    if isinstance(indices_or_sections, _C.Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, input.ndim)
    length = input.shape[dim]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        each, longer = divmod(length, indices_or_sections)
        return split_with_sizes(input, [each + (i < longer) for i in range(indices_or_sections)], dim)
    bounds = [None, *indices_or_sections, None]
    return tuple([_slice(input, dim, start, end) for start, end in pairwise(bounds)])


def _named_split(name: str, ndim: int, dim_of: Callable[[int], int]) -> None:
    def split_function(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        if input.ndim < ndim:
            raise RuntimeError(
                f"{name} requires a tensor with at least {ndim} dimension{'s' if ndim > 1 else ''}, but got a tensor with "
                f"{input.ndim} dimensions!"
            )
        dim = dim_of(input.ndim)
        if isinstance(indices_or_sections, int) and indices_or_sections > 0 and input.shape[dim] % indices_or_sections:
            raise RuntimeError(
                f"{name} attempted to split along dimension {dim}, but the size of the dimension {input.shape[dim]} is not divisible "
                f"by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, dim)

    split_function.__name__ = split_function.__qualname__ = name
    split_function.__doc__ = f"""Split along dimension {dim_of(3)} (of three); see :func:`candelabra.tensor_split`.

    Examples
    --------
    >>> import candelabra
    >>> [part.shape for part in candelabra.{name}(candelabra.ones(2, 2, 2), 2)][0]
    candelabra.Size({[1 if d == dim_of(3) else 2 for d in range(3)]})
    """
    function()(split_function)


_named_split("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1)
_named_split("vsplit", 2, lambda ndim: 0)
_named_split("dsplit", 3, lambda ndim: 2)


# ---- broadcasting


def broadcast_shape(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to."""
    ndim = max((len(shape) for shape in shapes), default=0)
    sizes = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n != 1:
                if sizes[i] not in (1, n):
                    raise RuntimeError(
                        f"Shape mismatch: objects cannot be broadcast to a single shape: {', '.join(str(list(s)) for s in shapes)}"
                    )
                sizes[i] = n
    return tuple(sizes)


@function(method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that tensors of the given shapes broadcast to.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.broadcast_shapes((2, 1), (3,))
    candelabra.Size([2, 3])
    """
    return _C.Size(broadcast_shape(*((s,) if isinstance(s, int) else s for s in shapes)))


@function(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Expand tensors to the shape they broadcast to, without copies.

    Examples
    --------
    >>> import candelabra
    >>> [t.shape for t in candelabra.broadcast_tensors(candelabra.ones(2, 1), candelabra.ones(3))]
    [candelabra.Size([2, 3]), candelabra.Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shape(*(t.shape for t in tensors))
    return tuple([_expand(t, shape) for t in tensors])


@function()
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Expand a tensor to a shape, without a copy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.broadcast_to(candelabra.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return _expand(input, size)


@function(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Make grids of coordinates out of one-dimensional tensors.

    Parameters
    ----------
    *tensors : Tensor
        One a coordinate, of one dimension or none.
    indexing : str
        ``"ij"``: the first coordinate varies along dimension 0; ``"xy"``: along dimension 1, as in pictures.

    Returns
    -------
    tuple of Tensor
        Views of one shape, one a coordinate.

    Examples
    --------
    >>> import candelabra
    >>> rows, columns = candelabra.meshgrid(candelabra.arange(2), candelabra.arange(3), indexing="ij")
    >>> rows
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise ValueError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'candelabra.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(
                f"candelabra.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of {t.ndim} dimensions"
            )
    swap = indexing == "xy" and len(tensors) > 1
    ordered = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = [t.numel() for t in ordered]
    grids = []
    for i, t in enumerate(ordered):
        line = _view(reshape(t, -1), [1] * i + [-1] + [1] * (len(ordered) - 1 - i))
        grids.append(_expand(line, shape))
    if swap:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


def _at_least(name: str, ndim: int, expand_to: Callable[[Tensor], Tensor]) -> Any:
    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tuple(tensors[0])
        elif len(tensors) == 1:
            return expand_to(tensors[0])
        return tuple([expand_to(t) for t in tensors])

    at_least.__name__ = at_least.__qualname__ = name
    at_least.__doc__ = f"""View tensors of fewer than {ndim} dimensions as having {ndim}.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}(candelabra.tensor(1)).ndim
    {ndim}
    """
    function(method=False)(at_least)
    return at_least


atleast_1d = _at_least("atleast_1d", 1, lambda t: _view(t, (1,)) if t.ndim == 0 else t)
atleast_2d = _at_least(
    "atleast_2d", 2, lambda t: _view(t, (1, 1)) if t.ndim == 0 else OPERATORS["unsqueeze"](t, 0) if t.ndim == 1 else t
)
atleast_3d = _at_least(
    "atleast_3d",
    3,
    lambda t: (
        _view(t, (1, 1, 1))
        if t.ndim == 0
        else OPERATORS["unsqueeze"](OPERATORS["unsqueeze"](t, 0), -1)
        if t.ndim == 1
        else OPERATORS["unsqueeze"](t, -1)
        if t.ndim == 2
        else t
    ),
)


@function(package=False)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1 in place."""
    return _become(self, OPERATORS["unsqueeze"](self.detach(), dim), "unsqueeze")


@function(package=False)
def squeeze_(self: Tensor, dim: int | None = None) -> Tensor:
    """Remove dimensions of size 1 in place."""
    return _become(self, OPERATORS["squeeze"](self.detach(), dim), "squeeze")


@function(package=False)
def t_(self: Tensor) -> Tensor:
    """Transpose a matrix in place."""
    return _become(self, OPERATORS["t"](self.detach()), "t")


@function(method=False)
def numel(input: Tensor) -> int:
    """Return the number of elements.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.numel(candelabra.ones(2, 3))
    6
    """
    return input.numel()


@function()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Make a square matrix with the elements of `input` on a diagonal.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.diagflat(candelabra.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(input, -1), offset)


@function()
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return a diagonal of a matrix, or a square matrix with a vector on a diagonal.

    Parameters
    ----------
    input : Tensor
        Of one or two dimensions.
    diagonal : int
        Which one: 0 the main one, positive above it.
    out : Tensor, optional
        Where the result is written.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.diag(candelabra.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if input.ndim == 1:
        result = diag_embed(input, diagonal)
    elif input.ndim == 2:
        result = _clone(OPERATORS["diagonal"](input, diagonal), memory_format=_C.contiguous_format)
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return result if out is None else out.copy_(result)


@function()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Make matrices with the last dimension of `input` on a diagonal and zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    offset : int
        Which diagonal: 0 the main one, positive above it.
    dim1, dim2 : int
        The two dimensions of the matrices in the result.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.diag_embed(candelabra.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    if input.ndim == 0:
        raise RuntimeError("diag_embed(): expected a tensor of at least one dimension")
    ndim = input.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = input.shape[-1]
    size = length + abs(offset)
    # Each row of the identity picked out by its element: differentiable, and exact also where elements are not finite.
    rows = OPERATORS["arange"](0, size, 1, dtype=_C.int64, device=input.device)
    on_diagonal = (rows + offset) == OPERATORS["unsqueeze"](rows, 1)
    on_diagonal = _transpose(on_diagonal, 0, 1)
    spread = input
    if offset:
        padding = OPERATORS["fill_"](
            OPERATORS["empty"]((*input.shape[:-1], abs(offset)), dtype=input.dtype, device=input.device), 0
        )
        spread = OPERATORS["cat"]([input, padding] if offset > 0 else [padding, input], -1)
    matrices = OPERATORS["where"](on_diagonal, OPERATORS["unsqueeze"](spread, -1), 0)
    return OPERATORS["movedim"](matrices, (-2, -1), (first, second))


@function()
def trace(input: Tensor) -> Tensor:
    """Sum the main diagonal of a matrix.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.trace(candelabra.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return OPERATORS["sum"](OPERATORS["diagonal"](input))
