"""Eigenvalues and singular values of matrices, batches of them."""

from .declaration import HIDDEN, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_MATRICES = (
    "Matrices are (..., rows, columns), of any strides, of one dtype that LAPACK has: float32, float64, complex64 "
    "or complex128. info is int32, one for each matrix; the kernel does not raise for it: candelabra.linalg does. "
    "Vectors that are not requested have size 0."
)

_SQUARE = "Tensor: of shape (..., n, n), floating point or complex"
_INFO = "info is 0 if the algorithm converged, -1 if A has elements that are not finite"
_X = ">>> x = candelabra.tensor([[2.0, 0.0], [0.0, 1.0]])\n"
operator(
    "linalg_eigh_ex(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors, Tensor info)",
    shape="eigh", tags=HIDDEN,
    autocast="float32", batching="leading",
    title="linalg.eigh",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.",
        f"{_X}>>> candelabra.ops.linalg_eigh_ex(x).eigenvalues\ntensor([1., 2.])",
        A=_SQUARE, UPLO="str: the triangle of A to read, ``L`` or ``U``", compute_v="bool: whether to compute vectors",
        returns=f"(eigenvalues, eigenvectors, info): vectors are columns; {_INFO}", out="",
    ),
)  # fmt: skip
operator(
    "linalg_eig_ex(Tensor A, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors, Tensor info)", shape="eig", tags=HIDDEN,
    autocast="float32", batching="leading",
    title="linalg.eig",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute eigenvalues and eigenvectors of square matrices.",
        f"{_X}>>> candelabra.ops.linalg_eig_ex(x).eigenvalues\ntensor([2.+0.j, 1.+0.j])",
        A=_SQUARE, compute_v="bool: whether to compute vectors",
        returns=f"(eigenvalues, eigenvectors, info): complex; vectors are columns of norm 1; {_INFO}", out="",
    ),
)  # fmt: skip
operator(
    "linalg_svd_ex(Tensor A, bool full_matrices=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor Vh, Tensor info)",
    shape="svd", tags=HIDDEN,
    autocast="float32", batching="leading",
    title="linalg.svd",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute singular values, in descending order, and singular vectors: ``A = U @ diag(S) @ Vh``.",
        f"{_X}>>> candelabra.ops.linalg_svd_ex(x).S\ntensor([2., 1.])",
        A="Tensor: of shape (..., m, n), floating point or complex", full_matrices="bool: whether U and Vh are square",
        compute_uv="bool: whether to compute vectors", returns=f"(U, S, Vh, info): {_INFO}", out="",
    ),
)  # fmt: skip
