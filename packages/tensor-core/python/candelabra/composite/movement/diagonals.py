"""Diagonals of matrices."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape, wrap_dim
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Tensor

_clone = OPERATORS["clone"]
_transpose = OPERATORS["transpose"]


@function()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a square matrix with the elements of `input` on a diagonal.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.diagflat(candelabra.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(input, -1), offset)


@function(out="exact")
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return a diagonal of a matrix, or a square matrix with a vector on a diagonal.

    Parameters
    ----------
    input : Tensor
        Of one or two dimensions.
    diagonal : int
        The diagonal: 0 is the main one, positive ones are above it.
    out : Tensor, optional
        The output tensor.

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
    return result if out is None else _C.give_to_out("diag", out, result)


@function()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices with the last dimension of `input` on a diagonal and zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    offset : int
        The diagonal: 0 is the main one, positive ones are above it.
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
    if type(input) is _C.Tensor and not input.requires_grad:
        empty = OPERATORS["empty"]((*input.shape[:-1], size, size), dtype=input.dtype, device=input.device)
        matrices = OPERATORS["fill_"](empty, 0)
        OPERATORS["diagonal"](matrices, offset, -2, -1).copy_(input)
        return (
            matrices
            if (first, second) == (ndim - 2, ndim - 1)
            else OPERATORS["movedim"](matrices, (-2, -1), (first, second))
        )
    # Selects by identity rows: differentiable, and exact for elements that are not finite.
    rows = OPERATORS["arange"](0, size, 1, dtype=_C.int64, device=input.device)
    on_diagonal = (rows + offset) == OPERATORS["unsqueeze"](rows, 1)
    on_diagonal = _transpose(on_diagonal, 0, 1)
    spread = input
    if offset:
        padding = OPERATORS["fill_"](
            OPERATORS["empty"]((*input.shape[:-1], abs(offset)), dtype=input.dtype, device=input.device), 0
        )
        spread = OPERATORS["cat"]([input, padding] if offset > 0 else [padding, input], -1)
    matrices = OPERATORS["where"](
        on_diagonal, OPERATORS["unsqueeze"](spread, -1), False if input.dtype is _C.bool else 0
    )
    return OPERATORS["movedim"](matrices, (-2, -1), (first, second))


@function()
def trace(input: Tensor) -> Tensor:
    """Compute the sum of the main diagonal of a matrix.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.trace(candelabra.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return OPERATORS["sum"](OPERATORS["diagonal"](input))
