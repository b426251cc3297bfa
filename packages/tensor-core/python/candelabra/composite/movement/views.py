"""Views with other shapes, composed of the core's views, and a copy if no view is possible."""

from __future__ import annotations

import operator as python_operator
from functools import reduce

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import sizes_of
from ..registration import PROPERTIES, fallback, function, refuse_others, tensor_property

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
    """Return a dimension counted from the front; a tensor without dimensions counts as having
    one.
    """
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim + limit if dim < 0 else dim


# ---- reshaping


@fallback("narrow")
def _narrow_spellings(input: Tensor, dim: Any = None, start: Any = None, length: Any = None) -> Any:
    # The core accepts a tensor of one integer for `start`.
    if isinstance(start, _C.Tensor):
        raise RuntimeError("narrow(): start must be an 0-dim integral Tensor.")
    return NotImplemented


@function(operator=True)
def reshape(input: Tensor, *shape: Any, **names: Any) -> Tensor:
    """Return a tensor with the same elements in another shape: a view if the strides allow it, else
    a copy.

    Parameters
    ----------
    input : Tensor
    *shape : int or sequence of int
        The new sizes; one may be -1, which is inferred from the others.

    Returns
    -------
    Tensor
        With the elements of `input` in row-major order.

    Raises
    ------
    RuntimeError
        If the number of elements differs.

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
    try:
        in_order = input.is_contiguous()
    except AttributeError:
        refuse_others("reshape", input=input)
        raise
    if in_order:
        return _view(input, wanted)
    wanted = _inferred(wanted, input.numel())
    if _can_view(input.shape, input.stride(), wanted):
        return _view(input, wanted)
    return _view(_clone(input, memory_format=_C.contiguous_format), wanted)


def _can_view(sizes: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether elements of these sizes and strides can be viewed in the new sizes."""
    old = [(n, step) for n, step in zip(sizes, strides) if n != 1]
    if any(n == 0 for n, _ in old):
        return True
    # From the back: the new sizes must exactly make up each run of contiguous old dimensions.
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
    """Reshape to the shape of another tensor; see :func:`candelabra.reshape`."""
    return reshape(self, other.shape)


@function(package=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View in the shape of another tensor."""
    return _view(self, other.shape)


@function(package=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of another tensor, without a copy."""
    return _expand(self, other.shape)


@function()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge adjacent dimensions into one.

    Parameters
    ----------
    input : Tensor
    start_dim, end_dim : int
        The first and last of them; all by default.

    Returns
    -------
    Tensor
        A view if the strides allow it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.flatten(candelabra.ones(2, 3, 4), 1).shape
    candelabra.Size([2, 12])
    """
    try:
        if start_dim == 0 and end_dim == -1 and input.is_contiguous():
            return _view(input, (input.numel(),)) if input.ndim != 1 else input
        ndim = input.ndim
    except AttributeError:
        refuse_others("flatten", input=input)
        raise
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
    """Flatten a tensor to one dimension: a view if it is contiguous, else a copy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ravel(candelabra.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    return reshape(OPERATORS["contiguous"](input) if "contiguous" in OPERATORS else input.contiguous(), -1)


# ---- exchanging dimensions


@function()
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions; the same as :func:`candelabra.transpose`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.swapdims(candelabra.ones(2, 3), 0, 1).shape
    candelabra.Size([3, 2])
    """
    return _transpose(input, dim0, dim1)


@function()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two dimensions; the same as :func:`candelabra.transpose`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.swapaxes(candelabra.ones(2, 3), 0, 1).shape
    candelabra.Size([3, 2])
    """
    return _transpose(input, axis0, axis1)


def become_view(self: Tensor, look: Callable[[Tensor], Tensor]) -> Tensor:
    """Give this tensor the geometry of the view `look` of it, and continue its history with it."""
    if not (self.requires_grad and _C.is_grad_enabled()):
        self.data = look(self.detach())
        return self
    if self.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    view = look(self)
    with _C.RecordingOff():
        self.data = view.detach()
    self._set_history(view.grad_fn, 0)
    return self


@function(package=False, aliases=("swapdims_",))
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions of this tensor in place."""
    return become_view(self, lambda whole: _transpose(whole, dim0, dim1))


@function(package=False)
def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two dimensions of this tensor in place."""
    return transpose_(self, axis0, axis1)


@function()
def moveaxis(input: Tensor, source: Tensor, destination: Any) -> Tensor:
    """Move dimensions to other positions; the same as :func:`candelabra.movedim`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.moveaxis(candelabra.ones(2, 3, 4), 0, -1).shape
    candelabra.Size([3, 4, 2])
    """
    return OPERATORS["movedim"](input, source, destination)


@tensor_property
def T(self: Tensor) -> Tensor:
    """The tensor with its dimensions in reverse order. Intended for matrices; warns for tensors
    with more dimensions.
    """
    if self.ndim == 2:
        return _transpose(self, 0, 1)
    if self.ndim > 2:
        _C.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in "
            "a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*range(x.ndim - 1, -1, -1))` to reverse "
            "the dimensions of a tensor."
        )
    elif self.ndim == 0:
        _C.warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    return _permute(self, range(self.ndim - 1, -1, -1))


@tensor_property
def mT(self: Tensor) -> Tensor:
    """The tensor with its last two dimensions transposed."""
    if self.ndim == 0:
        return self
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return _transpose(self, -2, -1)


@tensor_property
def H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return adjoint(self) if self.ndim else self.conj()


@tensor_property
def mH(self: Tensor) -> Tensor:
    """The tensor with its last two dimensions transposed, conjugated."""
    return adjoint(self)


@function()
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of the last two dimensions.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.adjoint(candelabra.tensor([[1j, 2]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if input.ndim == 0:
        return input.conj()
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
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


@function(package=False)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1 in place."""
    return become_view(self, lambda whole: OPERATORS["unsqueeze"](whole, dim))


@function(package=False)
def squeeze_(self: Tensor, dim: int | None = None) -> Tensor:
    """Remove dimensions of size 1 in place."""
    return become_view(self, lambda whole: OPERATORS["squeeze"](whole, dim))


@function(package=False)
def t_(self: Tensor) -> Tensor:
    """Transpose a matrix in place."""
    return become_view(self, OPERATORS["t"])


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
