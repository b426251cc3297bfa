"""Copies: between tensors, dtypes and devices."""

from .declaration import CORE, HIDDEN, METHOD_ONLY, NO_OUT, operator

# The kernel "copy_" converts dtypes and walks strides on one device; the core takes care of broadcasting and of other devices.
operator("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", shape="copy_", tags=METHOD_ONLY | NO_OUT)
operator("clone(Tensor self, *, memory_format? memory_format=None) -> Tensor", shape="clone", tags=CORE | NO_OUT)
# dtype and device of the result are given; the public `to` in all its spellings is a composite.
operator(
    "to_copy(Tensor self, *, dtype? dtype=None, device? device=None, bool non_blocking=False, memory_format? memory_format=None) -> Tensor",
    shape="to_copy", tags=HIDDEN | CORE | NO_OUT,
)  # fmt: skip
operator(
    "contiguous(Tensor self, *, memory_format? memory_format=None) -> Tensor", shape="contiguous", tags=METHOD_ONLY | CORE | NO_OUT
)
