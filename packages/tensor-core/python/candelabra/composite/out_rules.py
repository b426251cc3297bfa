"""What PyTorch asks of ``out=`` for functions that are no operators; of operators their rows in the
catalogue say it.
"""

from __future__ import annotations

from candelabra import _C

#: By rule, in the words of :func:`candelabra.catalogue.operator`.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "exact apart": (
        "cross",
        "kthvalue",
        "linalg_cross",
    ),
    "exact whole": (
        "addbmm",
        "addmv",
        "aminmax",
        "index_reduce",
        "max",
        "median",
        "min",
        "mode",
        "msort",
        "nanmedian",
        "renorm",
    ),
    "exact": (
        "alias_copy",
        "as_strided_copy",
        "bucketize",
        "cummax",
        "cummin",
        "diag",
        "diagonal_copy",
        "expand_copy",
        "histc",
        "histogram",
        "inner",
        "isin",
        "linalg_cholesky",
        "linalg_eigh",
        "linalg_eigvalsh",
        "linalg_inv",
        "linalg_ldl_factor",
        "linalg_lu",
        "linalg_lu_factor",
        "linalg_matrix_norm",
        "linalg_multi_dot",
        "linalg_norm",
        "linalg_solve",
        "linalg_svd",
        "linalg_svdvals",
        "linalg_vecdot",
        "lu_solve",
        "lu_unpack",
        "matmul",
        "multinomial",
        "nanquantile",
        "narrow_copy",
        "norm",
        "ormqr",
        "permute_copy",
        "qr",
        "quantile",
        "searchsorted",
        "slice_scatter",
        "squeeze_copy",
        "svd",
        "t_copy",
        "tensordot",
        "transpose_copy",
        "triangular_solve",
        "unfold_copy",
        "unsqueeze_copy",
        "vdot",
        "view_copy",
    ),
    "whole": (
        "addr",
        "kron",
    ),
    "apart": ("take_along_dim",),
}

for _rule, _names in FUNCTIONS.items():
    for _name in _names:
        _C.declare_out_rule(_name, _rule)
