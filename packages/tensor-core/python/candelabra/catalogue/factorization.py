"""Factorizations of batches of matrices; the dimensions before the last two are the batch."""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_MATRICES = (
    "Matrices are (..., rows, columns), of any strides, of one dtype that LAPACK has: float32, float64, complex64 "
    "or complex128. info is int32, one for each matrix; the kernel does not raise for it: candelabra.linalg does."
)

_A = "Tensor: of shape (..., m, n), floating point or complex"
_SQUARE = "Tensor: of shape (..., n, n), floating point or complex"
_INFO = "info is 0 for each matrix that was factored, else the index, from 1, of the row where the factorization failed"
_X = ">>> x = candelabra.tensor([[4.0, 2.0], [2.0, 5.0]])\n"
operator(
    "linalg_cholesky_ex(Tensor self, bool upper=False) -> (Tensor L, Tensor info)", shape="cholesky", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.cholesky",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the Cholesky factorization of Hermitian positive-definite matrices: ``A = L @ L.mH``, L lower triangular. Only the triangle that `upper` selects is read.",
        f"{_X}>>> candelabra.ops.linalg_cholesky_ex(x).L\ntensor([[2., 0.],\n        [1., 2.]])",
        input=_SQUARE, upper="bool: whether the factor is upper triangular: ``A = U.mH @ U``",
        returns=f"(L, info): {_INFO}", out="",
    ),
)  # fmt: skip
operator(
    "linalg_lu_factor_ex(Tensor A, bool pivot=True) -> (Tensor LU, Tensor pivots, Tensor info)", shape="lu_factor", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.lu_factor",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the LU factorization with row pivoting: ``A = P @ L @ U``, L lower triangular with a unit diagonal, U upper triangular, both in one matrix.",
        f"{_X}>>> candelabra.ops.linalg_lu_factor_ex(x).LU\ntensor([[4.0000, 2.0000],\n        [0.5000, 4.0000]])",
        A=_A, pivot="bool: whether to pivot rows",
        returns=f"(LU, pivots, info): pivots (int32) hold the row, from 1, with which each row was swapped; {_INFO}", out="",
    ),
)  # fmt: skip
operator(
    "_lu_pivots_to_permutation(Tensor self, int dim, bool backwards=False) -> Tensor", shape="_cummax_cummin",
    tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees=(
        "self is int32 or int64, and the output int64 indices; dim is wrapped, and tensors without dimensions are "
        "seen as one-dimensional of size 1. Entries are numbered from 1; the kernel refuses other numbers."
    ),
    doc=document(
        "Return the permutation of 0, 1, … that row swaps produce: pivots, counted from 1, are applied one after the other.",
        ">>> candelabra.ops._lu_pivots_to_permutation(candelabra.tensor([3, 3, 3], dtype=candelabra.int32), 0)\ntensor([2, 0, 1])",
        input="Tensor: int32 or int64, of any shape", dim="int: the dimension of the swaps",
        backwards="bool: whether to apply the swaps in reverse, for the inverse permutation",
        returns="Tensor: indices of dtype int64, of the shape of `input`", raises="RuntimeError: if a pivot is out of range", out="",
    ),
)  # fmt: skip
operator(
    "linalg_ldl_factor_ex(Tensor self, bool hermitian=False) -> (Tensor LD, Tensor pivots, Tensor info)", shape="ldl_factor",
    tags=HIDDEN | NONDIFFERENTIABLE,
    out="exact", autocast="float32", batching="leading",
    title="linalg.ldl_factor",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the LDL factorization of symmetric or Hermitian matrices, which may be indefinite: ``A = L @ D @ L.mT``, D with diagonal blocks of one or two rows (Bunch and Kaufman).",
        f"{_X}>>> candelabra.ops.linalg_ldl_factor_ex(x).LD\ntensor([[4.0000, 0.0000],\n        [0.5000, 4.0000]])",
        input=_SQUARE, hermitian="bool: whether complex matrices are Hermitian instead of symmetric",
        returns=f"(LD, pivots, info): as LAPACK's sytrf has them; {_INFO}", out="",
    ),
)  # fmt: skip
operator(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)", shape="geqrf", tags=NONDIFFERENTIABLE,
    autocast="float32", batching="leading",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the QR factorization by Householder reflections: R on and above the diagonal, the vectors of the reflections below it.",
        f"{_X}>>> candelabra.geqrf(x).a.triu()\ntensor([[-4.4721, -4.0249],\n        [ 0.0000,  3.5777]])",
        input=_A, returns="(a, tau): tau are the scalar factors of the reflections ``I - tau * v @ v.mH``",
    ),
)  # fmt: skip
operator(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", shape="qr", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.qr",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the QR factorization: ``A = Q @ R``, the columns of Q orthonormal, R upper triangular.",
        f"{_X}>>> candelabra.ops.linalg_qr(x).R\ntensor([[-4.4721, -4.0249],\n        [ 0.0000,  3.5777]])",
        A=_A, mode="str: ``reduced``, ``complete`` (Q is square) or ``r`` (Q is empty)", returns="(Q, R): the factors",
    ),
)  # fmt: skip
operator(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor", shape="householder_product", tags=HIDDEN,
    autocast="float32", batching="leading",
    title="linalg.householder_product",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the first n columns of the product of Householder reflections, as geqrf returns them.",
        ">>> v, tau = candelabra.geqrf(candelabra.tensor([[4.0, 2.0], [2.0, 5.0]]))\n"
        ">>> candelabra.ops.linalg_householder_product(v, tau)\ntensor([[-0.8944, -0.4472],\n        [-0.4472,  0.8944]])",
        input="Tensor: of shape (..., m, n), m at least n", tau="Tensor: of shape (..., k), k at most n",
        returns="Tensor: of shape (..., m, n)",
    ),
)  # fmt: skip
