"""Systems of linear equations, batches of them."""

from .declaration import COMPOSITE, HIDDEN, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_MATRICES = (
    "Matrices are (..., rows, columns), of any strides, of one dtype that LAPACK has: float32, float64, complex64 "
    "or complex128. Batches of several arguments are expanded to one. info is int32, one for each matrix; the kernel "
    "does not raise for it: candelabra.linalg does."
)

_SQUARE = "Tensor: of shape (..., n, n), floating point or complex"
_B = "Tensor: of shape (..., n, k); batches are broadcast"
_X = ">>> x = candelabra.tensor([[2.0, 0.0], [1.0, 4.0]])\n>>> b = candelabra.tensor([[2.0], [5.0]])\n"
_SOLUTION = "tensor([[1.],\n        [1.]])"
operator(
    "linalg_solve_ex(Tensor A, Tensor B) -> (Tensor result, Tensor info)", shape="solve", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.solve",
    sees=_SEES_MATRICES,
    doc=document(
        "Solve ``A @ X = B`` by LU factorization with row pivoting.",
        f"{_X}>>> candelabra.ops.linalg_solve_ex(x, b).result\n{_SOLUTION}",
        A=_SQUARE, B=_B, returns="(result, info): info is 0, or the index, from 1, of the zero on the diagonal of U", out="",
    ),
)  # fmt: skip
operator(
    "linalg_inv_ex(Tensor A) -> (Tensor inverse, Tensor info)", shape="invert", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.inv",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the inverses of square matrices.",
        f"{_X}>>> candelabra.ops.linalg_inv_ex(x).inverse[1]\ntensor([-0.1250,  0.2500])",
        A=_SQUARE, returns="(inverse, info): info is 0, or the index, from 1, of the zero on the diagonal of U", out="",
    ),
)  # fmt: skip
operator(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    shape="solve_triangular", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.solve_triangular",
    sees=_SEES_MATRICES,
    doc=document(
        "Solve ``A @ X = B`` with triangular A by substitution; the other triangle is not read.",
        f"{_X}>>> candelabra.ops.linalg_solve_triangular(x, b, upper=False)\n{_SOLUTION}",
        input=_SQUARE, B=_B, upper="bool: whether A is upper triangular", left="bool: whether A is on the left; else ``X @ A = B``",
        unitriangular="bool: whether the diagonal counts as ones", returns="Tensor: X, of shape (..., n, k)",
    ),
)  # fmt: skip
operator(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, bool adjoint=False) -> Tensor", shape="factored_solve", tags=HIDDEN,
    out="exact", autocast="float32", batching="leading",
    title="linalg.lu_solve",
    sees=_SEES_MATRICES,
    doc=document(
        "Solve ``A @ X = B`` with the factors of A that linalg_lu_factor_ex returns.",
        f"{_X}>>> LU, pivots, _ = candelabra.ops.linalg_lu_factor_ex(x)\n>>> candelabra.ops.linalg_lu_solve(LU, pivots, b)\n{_SOLUTION}",
        LU=_SQUARE, pivots="Tensor: of shape (..., n) and dtype int32", B=_B, adjoint="bool: whether to solve ``A.mH @ X = B``",
        returns="Tensor: X, of shape (..., n, k)",
    ),
)  # fmt: skip
operator(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", shape="cholesky_solve", tags=COMPOSITE,
    autocast="float32", batching="leading",
    sees=_SEES_MATRICES,
    doc=document(
        "Solve ``A @ X = B`` given the Cholesky factor of A.",
        ">>> candelabra.cholesky_solve(candelabra.ones(2, 1), candelabra.tensor([[2.0, 0.0], [0.0, 1.0]]))\n"
        "tensor([[0.2500],\n        [1.0000]])",
        input="Tensor: B, of shape (..., n, k)", input2="Tensor: the factor, of shape (..., n, n)",
        upper="bool: whether the factor is upper triangular", returns="Tensor: X, of shape (..., n, k)",
    ),
)  # fmt: skip
operator(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian=False) -> Tensor", shape="factored_solve",
    tags=HIDDEN | NONDIFFERENTIABLE,
    out="exact", autocast="float32",
    title="linalg.ldl_solve",
    sees=_SEES_MATRICES,
    doc=document(
        "Solve ``A @ X = B`` with the factors of A that linalg_ldl_factor_ex returns.",
        ">>> x, b = candelabra.tensor([[2.0, 0.0], [0.0, 4.0]]), candelabra.tensor([[2.0], [4.0]])\n"
        f">>> LD, pivots, _ = candelabra.ops.linalg_ldl_factor_ex(x)\n>>> candelabra.ops.linalg_ldl_solve(LD, pivots, b)\n{_SOLUTION}",
        LD=_SQUARE, pivots="Tensor: of shape (..., n) and dtype int32", B=_B,
        hermitian="bool: the argument of linalg_ldl_factor_ex", returns="Tensor: X, of shape (..., n, k)",
    ),
)  # fmt: skip
operator(
    "linalg_lstsq_driver(Tensor A, Tensor B, float rcond, str driver) -> (Tensor X, Tensor rank, Tensor singular_values)",
    shape="lstsq", tags=HIDDEN,
    autocast="float32",
    title="linalg.lstsq",
    sees=f"{_SEES_MATRICES} driver is gels, gelsy, gelsd or gelss.",
    doc=document(
        "Minimize the norm of ``A @ X - B`` by one of LAPACK's drivers.",
        ">>> x, b = candelabra.tensor([[1.0], [1.0]]), candelabra.tensor([[1.0], [3.0]])\n"
        '>>> candelabra.ops.linalg_lstsq_driver(x, b, 1e-6, "gelsd").X[:1].round(decimals=3)\ntensor([[2.]])',
        A="Tensor: of shape (..., m, n)", B="Tensor: of shape (..., m, k); batches are broadcast",
        rcond="float: singular values below ``rcond`` times the largest count as zero", driver="str: gels, gelsy, gelsd or gelss",
        returns="(X, rank, singular_values): X has max(m, n) rows, the solution in the first n; singular_values may be empty", out="",
    ),
)  # fmt: skip
operator(
    "linalg_det(Tensor A) -> Tensor", shape="batch_scalar", tags=HIDDEN | COMPOSITE,
    out="exact", autocast="float32", batching="leading",
    title="linalg.det",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute determinants.", ">>> candelabra.ops.linalg_det(candelabra.tensor([[2.0, 0.0], [1.0, 4.0]]))\ntensor(8.)",
        A=_SQUARE, returns="Tensor: of shape (...)",
    ),
)  # fmt: skip
operator(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", shape="slogdet", tags=HIDDEN | COMPOSITE,
    out="exact", autocast="float32", batching="leading",
    title="linalg.slogdet",
    sees=_SEES_MATRICES,
    doc=document(
        "Compute the sign and the logarithm of the magnitude of determinants.",
        ">>> candelabra.ops.linalg_slogdet(candelabra.tensor([[0.0, 2.0], [1.0, 0.0]]))[0]\ntensor(-1.)",
        A=_SQUARE, returns="(sign, logabsdet): of shape (...)", out="",
    ),
)  # fmt: skip
operator(
    "linalg_pinv_atol_rtol(Tensor A, Tensor atol, Tensor rtol, bool hermitian=False) -> Tensor", shape="pseudoinverse",
    tags=HIDDEN | COMPOSITE,
    title="linalg.pinv",
    sees=(
        "A is (..., rows, columns), of any strides, of a dtype that LAPACK has; atol and rtol are as they were "
        "given."
    ),
    doc=document(
        "Compute pseudoinverses.",
        ">>> zero = candelabra.tensor(0.0)\n>>> candelabra.ops.linalg_pinv_atol_rtol(candelabra.tensor([[2.0], [0.0]]), zero, zero)\n"
        "tensor([[0.5000, 0.0000]])",
        A="Tensor: of shape (..., m, n), floating point or complex", atol="Tensor: broadcast to the batch of A",
        rtol="Tensor: broadcast to the batch of A", hermitian="bool: whether A is Hermitian", returns="Tensor: of shape (..., n, m)",
    ),
)  # fmt: skip
