"""Comparisons, elementwise and of whole tensors."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..keyword_names import also_named
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_to_copy = OPERATORS["_to_copy"]


@function()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Test elementwise whether ``|input - other| <= atol + rtol * |other|``.

    Parameters
    ----------
    input, other : Tensor
        Of one dtype, broadcast to one shape.
    rtol, atol : float
        Relative and absolute tolerance.
    equal_nan : bool
        Whether two NaN are close.

    Returns
    -------
    Tensor
        Of dtype bool. Equal infinities are close.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.isclose(candelabra.tensor([1.0, 2.0]), candelabra.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    for position, (name, given) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(given, _C.Tensor):
            raise TypeError(
                f"isclose(): argument '{name}' (position {position}) must be Tensor, not {type(given).__name__}"
            )
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{_dtype_name(input)} did not match {_dtype_name(other)}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = OPERATORS["eq"](input, other)
    inexact = input.dtype.is_floating_point or input.dtype.is_complex
    if equal_nan and inexact:
        close = close | (OPERATORS["isnan"](input) & OPERATORS["isnan"](other))
    if rtol == 0 and atol == 0:
        return close
    if not inexact:
        input, other = (_to_copy(x, dtype=_C.float64) for x in (input, other))
    allowed = atol + rtol * OPERATORS["abs"](other)
    difference = OPERATORS["abs"](input - other)
    return close | (OPERATORS["isfinite"](difference) & (difference <= allowed))


def _dtype_name(x: Tensor) -> str:
    return str(x.dtype).rpartition(".")[2].capitalize()


@function()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are close; see :func:`candelabra.isclose`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import candelabra
    >>> candelabra.allclose(candelabra.tensor([1.0]), candelabra.tensor([1.0 + 1e-7]))
    True
    """
    return bool(OPERATORS["all"](isclose(input, other, rtol, atol, equal_nan)))


@function()
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and the same elements.

    Returns
    -------
    bool
        False if the shapes differ or an element is NaN.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.equal(candelabra.tensor([1, 2]), candelabra.tensor([1, 2]))
    True
    """
    if not (isinstance(input, _C.Tensor) and isinstance(other, _C.Tensor)):
        wrong = other if isinstance(input, _C.Tensor) else input
        raise TypeError(f"equal(): expected two Tensors, got {type(wrong).__name__}")
    if input.shape != other.shape:
        return False
    return bool(OPERATORS["all"](OPERATORS["eq"](input, other)))


@function()
def isreal(input: Tensor) -> Tensor:
    """Test elementwise whether the imaginary part is zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.isreal(candelabra.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    if input.dtype.is_complex:
        return input.imag == 0
    return OPERATORS["empty"](list(input.shape), dtype=_C.bool, device=input.device).fill_(True)


@function()
def is_nonzero(input: Tensor) -> bool:
    """Return whether the single element of a tensor is not zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_nonzero(candelabra.tensor([0.0]))
    False
    """
    if input.numel() == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if input.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input.item())


@function(out="exact")
def isin(
    elements: Tensor,
    test_elements: Tensor,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Test for each element whether it is one of the test elements.

    Parameters
    ----------
    elements, test_elements : Tensor or number
    assume_unique : bool
        Ignored; for compatibility with PyTorch.
    invert : bool
        Whether to invert the result.

    Returns
    -------
    Tensor
        Of dtype bool and the shape of `elements`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.isin(candelabra.tensor([1, 2, 3]), candelabra.tensor([2, 4]))
    tensor([False,  True, False])
    """
    if not isinstance(elements, _C.Tensor):
        elements = _C.tensor_from_data(elements, None, test_elements.device)
    if not isinstance(test_elements, _C.Tensor):
        found = OPERATORS["eq"](elements, test_elements)
    else:
        tests = test_elements.reshape(-1)
        ordered = not any(x.dtype.is_complex or x.dtype is _C.bool for x in (elements, tests))
        if ordered and tests.numel():
            dtype = _C.promote_types(elements.dtype, tests.dtype)
            wanted, tests = elements.detach().to(dtype), OPERATORS["sort"](tests.detach().to(dtype))[0]
            places = OPERATORS["clamp"](
                OPERATORS["_searchsorted"](tests, wanted, False, False, None), max=tests.numel() - 1
            )
            found = OPERATORS["eq"](OPERATORS["index"](tests, [places]), wanted)
        else:
            found = OPERATORS["any"](OPERATORS["eq"](elements.unsqueeze(-1), tests), -1)
    result = OPERATORS["logical_not"](found) if invert else found
    return result if out is None else _C.give_to_out("isin", out, result)


@function(method=False)
@also_named(tensor="tensor1", other="tensor2")
def result_type(tensor1: Tensor, tensor2: Tensor) -> Any:
    """Return the dtype of an arithmetic operation on the arguments, by the rules of type promotion.

    Parameters
    ----------
    tensor1, tensor2 : Tensor or number

    Returns
    -------
    dtype

    Examples
    --------
    >>> import candelabra
    >>> candelabra.result_type(candelabra.tensor([1, 2]), 1.0)
    candelabra.float32
    """
    return _C.result_type(tensor1, tensor2)
