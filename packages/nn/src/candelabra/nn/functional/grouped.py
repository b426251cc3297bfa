"""Multiply groups of matrices.

Of PyTorch's products of scaled matrices, `candelabra._scaled_mm` has the one that PyTorch has on
the CPU.
"""

from __future__ import annotations

from typing import Any, NoReturn

import candelabra
from candelabra import Tensor


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: candelabra.dtype | None = None,
) -> Tensor:
    """Multiply groups of matrices.

    A group is a matrix of a batch, or a slice of a matrix that ends at an entry of `offs`.

    Parameters
    ----------
    mat_a, mat_b
        (G, M, K) and (G, K, N): one product per group, result (G, M, N). (M, K) and (G, K, N): the
        rows of mat_a are split into groups, result (M, N). (G, M, K) and (K, N): the columns of
        mat_b are split, result (M, N). (M, K) and (K, N): K is split in both, result (G, M, N).
    offs
        End of each group: (G), dtype int32. Required except in the first form.
    bias
        Not supported, as in PyTorch.
    out_dtype
        Dtype of the result; must be that of the matrices.

    Raises
    ------
    RuntimeError
        If shapes, dtypes or offsets are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> ends = candelabra.tensor([1, 3], dtype=candelabra.int32)
    >>> F.grouped_mm(candelabra.ones(3, 2), candelabra.ones(2, 2, 1), offs=ends).flatten()
    tensor([2., 2., 2.])
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise RuntimeError(
            f"mat_a and mat_b have to be 2 or 3 dimensional, but got {list(mat_a.shape)} and {list(mat_b.shape)}"
        )
    if mat_a.dtype != mat_b.dtype or not mat_a.is_floating_point():
        raise RuntimeError(
            f"grouped_mm: expected matrices of one floating dtype, but got {mat_a.dtype} and {mat_b.dtype}"
        )
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            f"contraction dimension of mat_a and mat_b must match, but got {list(mat_a.shape)} and {list(mat_b.shape)}"
        )
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError(f"grouped_mm: out_dtype must be that of the matrices, {mat_a.dtype}, but got {out_dtype}")
    if mat_a.ndim == 3 and mat_b.ndim == 3:
        if offs is not None:
            raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
        if mat_a.shape[0] != mat_b.shape[0]:
            raise RuntimeError(f"batched dimension has to match, but got {mat_a.shape[0]} and {mat_b.shape[0]}")
        return candelabra.bmm(mat_a, mat_b)
    if offs is None:
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs.ndim != 1 or offs.dtype != candelabra.int32:
        raise RuntimeError(
            f"Offsets tensor must be a 1D int32 tensor, but got shape {list(offs.shape)} of {offs.dtype}"
        )
    ends = [int(end) for end in offs.tolist()]
    cut = mat_a.shape[0] if mat_b.ndim == 3 else mat_b.shape[1] if mat_a.ndim == 3 else mat_a.shape[1]
    if any(a > b for a, b in zip([0, *ends], ends, strict=False)) or (ends and ends[-1] > cut):
        raise RuntimeError(f"grouped_mm: offsets must not fall and not be larger than {cut}, but got {ends}")
    starts = [0, *ends[:-1]]
    for matrix in (mat_a, mat_b):
        if matrix.ndim == 3 and matrix.shape[0] != len(ends):
            raise RuntimeError(f"grouped_mm: {len(ends)} offsets do not fit a batch of {matrix.shape[0]} matrices")
    spans = list(zip(starts, ends, strict=True))
    if mat_b.ndim == 3:
        made = [mat_a[a:b] @ mat_b[g] for g, (a, b) in enumerate(spans)]
        made.append(mat_a.new_zeros((cut - (ends[-1] if ends else 0), mat_b.shape[2])))
        return candelabra.cat(made)
    if mat_a.ndim == 3:
        made = [mat_a[g] @ mat_b[:, a:b] for g, (a, b) in enumerate(spans)]
        made.append(mat_a.new_zeros((mat_a.shape[1], cut - (ends[-1] if ends else 0))))
        return candelabra.cat(made, 1)
    if not spans:
        return mat_a.new_zeros((0, mat_a.shape[0], mat_b.shape[1]))
    return candelabra.stack([mat_a[:, a:b] @ mat_b[a:b] for a, b in spans])


def _no_scaled_dtypes(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: scales of blocks of float8 and float4 matrices are not supported; candelabra._scaled_mm has one scale for a float8 "
        "matrix or for each of its rows"
    )


def scaled_mm(*arguments: Any, **names: Any) -> NoReturn:
    """Raise: PyTorch's product of float8 and float4 matrices with scales of blocks is not
    supported.

    Raises
    ------
    NotImplementedError
        Always.

    Examples
    --------
    >>> from candelabra.nn import functional as F
    >>> F.scaled_mm()
    Traceback (most recent call last):
    NotImplementedError: scaled_mm: scales of blocks of float8 and float4 matrices are not ...
    """
    _no_scaled_dtypes("scaled_mm")


def scaled_grouped_mm(*arguments: Any, **names: Any) -> NoReturn:
    """Raise: PyTorch's `grouped_mm` of scaled float8 matrices is not supported. See `scaled_mm`.

    Raises
    ------
    NotImplementedError
        Always.
    """
    _no_scaled_dtypes("scaled_grouped_mm")


__all__ = ["grouped_mm", "scaled_grouped_mm", "scaled_mm"]
