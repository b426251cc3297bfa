"""Products of float8 matrices with scales."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Tensor, dtype


def _check_sizes(self: Tensor, mat2: Tensor, bias: Tensor | None) -> None:
    if self.ndim != 2:
        raise RuntimeError("mat1 must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    (rows, inner), (other, columns) = self.shape, mat2.shape
    if inner != other:
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({rows}x{inner} and {other}x{columns})")
    if bias is not None and bias.numel() != columns:
        raise RuntimeError(f"Bias must be size {columns} but got {bias.numel()}")


def _check_scales(self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor) -> None:
    whole = scale_a.numel() == 1 and scale_b.numel() == 1
    by_rows = tuple(scale_a.shape) == (self.shape[0], 1) and tuple(scale_b.shape) == (1, mat2.shape[1])
    matrices = all(m.dtype._float8_format is not None and m.dtype is not _C.float8_e8m0fnu for m in (self, mat2))
    if not matrices or scale_a.dtype is not _C.float32 or scale_b.dtype is not _C.float32 or not (whole or by_rows):
        raise ValueError(
            "Invalid scaling configuration. The matrices must be of float8 dtypes, and the scales of float32: one number for each matrix, "
            f"or (rows, 1) and (1, columns); got {self.dtype} and {mat2.dtype}, with scales of shape {tuple(scale_a.shape)} and "
            f"{tuple(scale_b.shape)} of {scale_a.dtype} and {scale_b.dtype}"
        )


@function(name="_scaled_mm", method=False)
def scaled_mm(
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: dtype | None = None,
    use_fast_accum: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Multiply float8 matrices and scale the product: ``(self * scale_a) @ (mat2 * scale_b) +
    bias``.

    The sum is computed in float32.

    Parameters
    ----------
    self, mat2 : Tensor
        Matrices of float8 dtypes with a sign.
    scale_a, scale_b : Tensor
        Of float32: one number for each matrix, or one for each row of ``self``, of shape (rows, 1),
        and each column of ``mat2``, of shape (1, columns).
    bias : Tensor, optional
        One number for each column.
    scale_result : Tensor, optional
        A float8 result is divided by this number.
    out_dtype : dtype, optional
        The dtype of the result; that of ``self`` by default.
    use_fast_accum : bool
        Ignored, as on PyTorch's CPU.
    out : Tensor, optional
        Where the result is written.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.
    ValueError
        If the dtypes or the scales are others than these, or ``out`` is of another dtype.

    Examples
    --------
    >>> import candelabra
    >>> half, one = candelabra.tensor(0.5), candelabra.tensor(1.0)
    >>> a = candelabra.eye(2).to(candelabra.float8_e4m3fn)
    >>> candelabra._scaled_mm(a, a, half, one, out_dtype=candelabra.float32)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    _check_sizes(self, mat2, bias)
    _check_scales(self, mat2, scale_a, scale_b)
    result_dtype = self.dtype if out_dtype is None else out_dtype
    if out is not None and out.dtype is not result_dtype:
        raise ValueError("out_dtype must match output matrix type")
    left, right = (OPERATORS["_to_copy"](m, dtype=_C.float32) for m in (self, mat2))
    scales = scale_a * scale_b if scale_a.ndim == scale_b.ndim else scale_a.reshape(()) * scale_b.reshape(())
    product = OPERATORS["mm"](left, right) * scales
    if bias is not None:
        product = product + OPERATORS["_to_copy"](bias.reshape(-1), dtype=_C.float32)
    if scale_result is not None and result_dtype._float8_format is not None:
        product = product / OPERATORS["_to_copy"](scale_result, dtype=_C.float32)
    result = OPERATORS["_to_copy"](product, dtype=result_dtype)
    return result if out is None else _C.give_to_out("_scaled_mm", out, result)
