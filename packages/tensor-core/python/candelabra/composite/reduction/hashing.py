"""Hashes of tensors."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape, wrap_dim
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._C import Tensor


@function()
def hash_tensor(
    input: Tensor,
    dim: int | Sequence[int] | None = (),
    *,
    keepdim: bool = False,
    mode: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Hash all elements, or those along dimensions: the exclusive or of their bit patterns as
    float64 or int64.

    Parameters
    ----------
    input : Tensor
        Of any dtype except complex ones and unsigned integers of more than 8 bits.
    dim : int or sequence of int, optional
        The dimensions to reduce; all by default.
    keepdim : bool
        Whether to keep them, with size 1.
    mode : int
        The hash function; only 0 (exclusive or) is supported.
    out : Tensor, optional
        Of dtype uint64: where the result is written.

    Returns
    -------
    Tensor
        Of dtype uint64.

    Raises
    ------
    RuntimeError
        For another mode, or where there are no elements and no dimension is given.
    IndexError
        If a reduced dimension is empty.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.hash_tensor(candelabra.tensor([[1, 2], [3, 4]]), 1)
    tensor([3, 7], dtype=candelabra.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if out is not None and out.dtype is not _C.uint64:
        raise RuntimeError(f"hash_tensor(): Expected result to be of dtype uint64, but got {out.dtype}")
    listed = [dim] if isinstance(dim, int) else list(() if dim is None else dim)
    if input.numel() == 0 and not listed:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )
    dims = sorted(wrap_dim(d, input.ndim) for d in listed) if listed else list(range(input.ndim))
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if input.ndim and input.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    if input.dtype.is_complex or input.dtype in (_C.uint16, _C.uint32, _C.uint64):
        raise NotImplementedError(f'"hash_tensor" not implemented for {input.dtype}')
    wide = OPERATORS["_to_copy"](input.detach(), dtype=_C.float64 if input.dtype.is_floating_point else _C.int64)
    bits = OPERATORS["view_dtype"](wide, _C.int64) if wide.dtype is _C.float64 else wide
    kept = [d for d in range(input.ndim) if d not in dims]
    shape = [1 if d in dims else n for d, n in enumerate(input.shape)] if keepdim else [input.shape[d] for d in kept]
    count = 1
    for d in dims:
        count *= input.shape[d] if input.ndim else 1
    columns = 1
    for d in kept:
        columns *= input.shape[d]
    rows = reshape(OPERATORS["permute"](bits, dims + kept) if input.ndim else bits, (count, columns))
    while count > 1:  # the first half with the second; an odd element is kept
        half = count // 2
        folded = OPERATORS["bitwise_xor"](
            OPERATORS["narrow"](rows, 0, 0, half), OPERATORS["narrow"](rows, 0, half, half)
        )
        if count % 2:
            folded = OPERATORS["cat"]([folded, OPERATORS["narrow"](rows, 0, count - 1, 1)], 0)
        rows, count = folded, half + count % 2
    result = OPERATORS["view_dtype"](reshape(rows, shape), _C.uint64)
    return result if out is None else _C.give_to_out("hash_tensor", out, result)
