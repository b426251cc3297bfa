"""Copies of views: ``NAME_copy`` computes the view NAME into new memory. Also copies with an
embedded part.
"""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import sizes_of
from ..movement.views import reshape
from ..registration import FUNCTIONS, METHODS, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor

_clone = OPERATORS["clone"]

#: Each view with the arguments of its example, what that shows of ``x = arange(4.).view(2, 2)``,
#: and the rule of the copy's ``out=``.
_VIEWS = {
    "alias": ("x", "tensor([[0., 1.],\n        [2., 3.]])", "exact"),
    "as_strided": ("x, (2,), (2,)", "tensor([0., 2.])", "exact"),
    "detach": ("x", "tensor([[0., 1.],\n        [2., 3.]])", ""),
    "diagonal": ("x", "tensor([0., 3.])", "exact"),
    "expand": ("x[:, :1], (2, 2)", "tensor([[0., 0.],\n        [2., 2.]])", "exact"),
    "permute": ("x, (1, 0)", "tensor([[0., 2.],\n        [1., 3.]])", "exact"),
    "select": ("x, 0, 1", "tensor([2., 3.])", ""),
    "slice": ("x, 0, 1", "tensor([[2., 3.]])", ""),
    "squeeze": ("x[:1]", "tensor([0., 1.])", "exact"),
    "t": ("x", "tensor([[0., 2.],\n        [1., 3.]])", "exact"),
    "transpose": ("x, 0, 1", "tensor([[0., 2.],\n        [1., 3.]])", "exact"),
    "unfold": ("x[0], 0, 1, 1", "tensor([[0.],\n        [1.]])", "exact"),
    "unsqueeze": ("x[0], 0", "tensor([[0., 1.]])", "exact"),
    "view_as_complex": ("x", "tensor([0.+1.j, 2.+3.j])", ""),
    "view_as_real": ("candelabra.tensor([1 + 2j])", "tensor([[1., 2.]])", ""),
}
#: Each view that is several tensors with its example, and what that shows.
_SPLITS = {
    "split": ("x[0], 1", "(tensor([0.]), tensor([1.]))"),
    "split_with_sizes": ("x[0], [1, 1]", "(tensor([0.]), tensor([1.]))"),
    "unbind": ("x", "(tensor([0., 1.]), tensor([2., 3.]))"),
}


def _view(name: str) -> Callable[..., Any]:
    return OPERATORS[name] if name in OPERATORS else FUNCTIONS.get(name) or METHODS[name]


def _document(name: str, view: str, arguments: str, shown: str, result: str) -> str:
    return f"""Compute what ``{view}`` is, with the same arguments, into {result}.

    Parameters
    ----------
    input : Tensor
    *arguments
        Those of ``{view}``.
    out : Tensor, optional
        Where the result is written; several tensors for several results.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.arange(4.0).view(2, 2)
    >>> candelabra.{name}({arguments})
    """ + shown.replace("\n", "\n    ")


def _copy_of(view: str, arguments: str, shown: str, rule: str) -> None:
    compute, name = _view(view), f"{view}_copy"

    def copied(input: Tensor, *arguments: Any, out: Tensor | None = None, **keywords: Any) -> Tensor:
        made = compute(input, *arguments, **keywords)
        return _clone(made, memory_format=_C.contiguous_format) if out is None else _C.give_to_out(name, out, made)

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = _document(name, view, arguments, shown, "memory of its own")
    function(method=False, out=rule)(copied)


def _copies_of(view: str, arguments: str, shown: str) -> None:
    compute, name = _view(view), f"{view}_copy"

    def copied(input: Tensor, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        parts = compute(input, *arguments, **keywords)
        if out is None:
            return tuple(_clone(part, memory_format=_C.contiguous_format) for part in parts)
        if isinstance(out, (tuple, list)) and len(out) != len(parts):
            raise RuntimeError(f"{name}() expected an out= argument of length {len(parts)}, got {len(out)}")
        _C.give_to_outs(name, out, parts)
        return None

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = _document(name, view, arguments, shown, "tensors of their own")
    function(method=False)(copied)


@function(out="exact")
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None) -> Tensor:
    """Compute ``narrow`` into new memory.

    Parameters
    ----------
    input : Tensor
    dim, start, length : int
        The dimension, and start and length of the part.
    out : Tensor, optional
        The output tensor.

    Raises
    ------
    RuntimeError
        If there is no such dimension, or the part does not lie inside it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.narrow_copy(candelabra.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if dim >= max(input.ndim, 1):
        raise RuntimeError(f"narrow_copy(): there is no dimension {dim} in a tensor of {input.ndim} dimensions")
    made = OPERATORS["narrow"](input, dim, start, length)
    return _clone(made, memory_format=_C.contiguous_format) if out is None else _C.give_to_out("narrow_copy", out, made)


for _name, (_arguments, _shown, _rule) in _VIEWS.items():
    _copy_of(_name, _arguments, _shown, _rule)
for _name, (_arguments, _shown) in _SPLITS.items():
    _copies_of(_name, _arguments, _shown)


@function(method=False, out="exact")
def view_copy(input: Tensor, *shape: Any, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Compute ``input.view(size)`` or ``input.view(dtype)`` into new memory.

    Parameters
    ----------
    input : Tensor
    size : sequence of int, or dtype
        As in :meth:`candelabra.Tensor.view`.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.view_copy(candelabra.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    # Reshaping into new memory does not require a view.
    of_dtype = dtype is not None or (len(shape) == 1 and isinstance(shape[0], _C.dtype))
    made = (input.view(*shape) if dtype is None else input.view(dtype)) if of_dtype else reshape(input, sizes_of(shape))
    return _clone(made, memory_format=_C.contiguous_format) if out is None else _C.give_to_out("view_copy", out, made)


@function()
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a copy of `input` with `src` embedded at ``as_strided(size, stride, storage_offset)``.

    Parameters
    ----------
    input : Tensor
    src : Tensor
        Of the shape `size`.
    size, stride : sequence of int
        Sizes and strides of the part, in elements.
    storage_offset : int, optional
        The offset of the part; by default that of `input`.

    Raises
    ------
    RuntimeError
        If `src` is not of the shape `size`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.as_strided_scatter(candelabra.zeros(2, 2), candelabra.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    # clone() keeps dense strides. Like PyTorch, other tensors are treated as contiguous.
    result = _clone(input)
    part = OPERATORS["as_strided"](
        result, size, stride, None if storage_offset is None else storage_offset - input.storage_offset()
    )
    if part.shape != src.shape:
        raise RuntimeError(
            f"as_strided_scatter(): expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(part.shape)}"
        )
    part.copy_(src)
    return result


@function(package=False)
def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Give this tensor the geometry of :func:`candelabra.as_strided`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.arange(4).as_strided_((2,), (2,))
    tensor([0, 2])
    """
    from ..movement.views import become_view

    return become_view(self, lambda whole: OPERATORS["as_strided"](whole, size, stride, storage_offset))


FUNCTIONS["as_strided_"] = as_strided_


def _changeable(input: Tensor, parts: Any, dim: int) -> Any:
    """Return views like `parts` of the input, each of which may be changed in place."""
    made, start = [], 0
    for part in parts:
        made.append(OPERATORS["narrow"](input, dim, start, part.shape[dim]))
        start += part.shape[dim]
    return tuple(made)


@function()
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """Split as :func:`candelabra.split` does.

    Each part may be changed in place, also while autograd records.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unsafe_split(candelabra.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _changeable(input, FUNCTIONS["split"](input, split_size, dim), dim)


@function()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Split into parts of the given sizes; see :func:`candelabra.unsafe_split`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unsafe_split_with_sizes(candelabra.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return _changeable(input, _view("split_with_sizes")(input, split_sizes, dim), dim)


@function()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """Split into about equal parts as :func:`candelabra.chunk` does; see
    :func:`candelabra.unsafe_split`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.unsafe_chunk(candelabra.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _changeable(input, FUNCTIONS["chunk"](input, chunks, dim), dim)


@function(package=False)
def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Resize this tensor to the size of another; new elements are uninitialized.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros(1).resize_as_(candelabra.zeros(2, 3)).shape
    candelabra.Size([2, 3])
    """
    return (
        self.resize_(other.shape) if memory_format is None else self.resize_(other.shape, memory_format=memory_format)
    )


FUNCTIONS["resize_as_"] = resize_as_


@function(method=False)
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a tensor shaped like `src` on the memory of `input`, which is a slice of a tensor like
    `src`.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.arange(4)
    >>> candelabra.slice_inverse(x[1:3], x, 0, 1, 3)
    tensor([0, 1, 2, 3])
    """
    part = OPERATORS["slice"](src, dim, start, end, step)
    offset = input.storage_offset() - (part.storage_offset() - src.storage_offset())
    return OPERATORS["as_strided"](input, list(src.shape), list(src.stride()), offset)
