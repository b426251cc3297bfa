"""Tensors from nothing: memory, constants and ranges."""

from .declaration import CORE, FUNCTION_ONLY, HIDDEN, METHOD_ONLY, NO_OUT, NONDIFFERENTIABLE, operator

operator(
    "empty(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None) -> Tensor",
    shape="empty", tags=HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE,
)  # fmt: skip
operator(
    "empty_strided(int[] size, int[] stride, *, dtype? dtype=None, device? device=None) -> Tensor",
    shape="empty_strided", tags=HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE,
)  # fmt: skip
operator("fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", shape="mutate_self", tags=NO_OUT)
operator(
    "arange(Scalar start, Scalar end, Scalar step, *, dtype dtype, device? device=None) -> Tensor",
    shape="arange", tags=HIDDEN | NONDIFFERENTIABLE,
)  # fmt: skip
operator(
    "linspace(Scalar start, Scalar end, int steps, *, dtype dtype, device? device=None) -> Tensor",
    shape="linspace", tags=HIDDEN | NONDIFFERENTIABLE,
)  # fmt: skip
