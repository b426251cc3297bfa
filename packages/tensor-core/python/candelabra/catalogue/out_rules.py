"""What PyTorch asks of a tensor given as ``out=``, beyond a dtype that the result can be cast to.

Names are those of operators, and of functions that give their results to ``out=`` themselves.
"""

from __future__ import annotations

from candelabra import _C

#: ``out=`` has to have the dtype of the result.
EXACT = (
    "_addmm_activation", "abs", "addmm", "amax", "amin", "argmax", "argmin", "baddbmm", "bitwise_not", "bmm", "ceil", "clamp", "complex", "conj_physical", "dot", "floor",
    "frac", "frexp", "gather", "heaviside", "index_add", "index_copy", "index_fill", "index_select", "isneginf", "isposinf", "kthvalue",
    "linalg_vector_norm", "log_softmax", "masked_select", "max_with_indices", "min_with_indices", "mm", "mv", "nan_to_num", "neg",
    "nonzero", "polar", "round", "scatter", "scatter_add", "sgn", "sign", "signbit", "softmax", "sort", "take", "topk", "tril", "triu",
    "trunc", "where",
    # functions
    "addbmm", "addmv", "alias_copy", "aminmax", "as_strided_copy", "bucketize", "cross", "cummax", "cummin", "diag", "diagonal_copy",
    "expand_copy", "histc", "histogram", "inner", "isin", "linalg_cross", "linalg_vecdot", "logcumsumexp", "matmul", "max",
    "median", "min", "mode", "msort", "multinomial", "nanmedian", "nanquantile", "narrow_copy", "norm", "permute_copy", "quantile",
    "linalg_cholesky", "linalg_cholesky_ex", "linalg_det", "linalg_eigh", "linalg_eigvalsh", "linalg_inv", "linalg_inv_ex",
    "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex",
    "linalg_lu_solve", "linalg_matrix_norm", "linalg_multi_dot", "linalg_norm", "linalg_qr", "linalg_slogdet", "linalg_solve",
    "linalg_solve_ex", "linalg_solve_triangular", "linalg_svd", "linalg_svdvals", "lu_solve", "lu_unpack", "ormqr", "qr", "svd",
    "triangular_solve", "renorm", "scatter_reduce", "index_reduce", "searchsorted", "slice_scatter", "squeeze_copy", "t_copy", "tensordot",
    "transpose_copy", "unfold_copy", "unsqueeze_copy", "vdot", "view_copy",
)  # fmt: skip

#: No element of ``out=`` may be one of another place of an input; elementwise operators all belong here.
WHOLE = (
    "addbmm", "addmv", "addr", "aminmax", "cumprod", "cumsum", "index_add", "index_copy", "index_fill", "index_reduce", "kron",
    "linalg_vector_norm", "logcumsumexp", "max", "max_with_indices", "median", "min", "min_with_indices", "mode", "msort", "nanmedian",
    "renorm", "scatter", "scatter_add", "scatter_reduce", "sort", "topk",
)  # fmt: skip

#: ``out=`` may not share any memory with an input.
APART = ("cat", "cross", "gather", "index_select", "kthvalue", "linalg_cross", "masked_select", "stack", "take", "take_along_dim")

_C.declare_out_rules(EXACT, WHOLE, APART)
