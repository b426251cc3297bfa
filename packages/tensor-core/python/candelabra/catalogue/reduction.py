"""Reductions over some or all dimensions. A kernel gets `dim` as sorted non-negative dimensions, all of them when none were given."""

from .declaration import COMPOSITE, HIDDEN, NONDIFFERENTIABLE, operator

for name in ("sum", "mean"):
    operator(f"{name}(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", shape=name)
operator("prod(Tensor self, int? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", shape="prod")
for name in ("amax", "amin"):
    operator(f"{name}(Tensor self, int[] dim=(), bool keepdim=False) -> Tensor", shape="extremum")
for name in ("max_with_indices", "min_with_indices"):
    operator(
        f"{name}(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        shape="extremum_indices",
        tags=HIDDEN,
    )
for name in ("argmax", "argmin"):
    operator(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", shape="arg_extremum", tags=NONDIFFERENTIABLE)
for name in ("all", "any"):
    operator(f"{name}(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", shape="reduce_bool", tags=NONDIFFERENTIABLE)
for name in ("var", "std"):
    operator(f"{name}(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", shape="variance")
# The vector norm of order ord: (sum |x|^ord)^(1/ord), with inf, -inf and 0 as in numpy.linalg.norm.
operator(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    shape="vector_norm",
    tags=HIDDEN,
)
operator("logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor", shape="logsumexp", tags=COMPOSITE)
