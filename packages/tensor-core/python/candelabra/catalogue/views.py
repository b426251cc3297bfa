"""Views: other sizes, strides and offsets on the same memory. The core does them all; no kernel is called."""

from .declaration import FUNCTION_ONLY, HIDDEN, METHOD_ONLY, NONDIFFERENTIABLE, VIEW, operator

operator("view(Tensor(a) self, int[] size) -> Tensor(a)", shape="view", tags=VIEW | METHOD_ONLY)
operator("view_dtype(Tensor(a) self, dtype dtype) -> Tensor(a)", shape="view_dtype", tags=VIEW | HIDDEN | NONDIFFERENTIABLE)
operator(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)", shape="as_strided", tags=VIEW
)
operator("expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)", shape="expand", tags=VIEW | METHOD_ONLY)
operator("permute(Tensor(a) self, int[] dims) -> Tensor(a)", shape="permute", tags=VIEW)
operator("transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", shape="transpose", tags=VIEW)
operator("t(Tensor(a) self) -> Tensor(a)", shape="t", tags=VIEW)
# squeeze with no dim removes every dimension of size 1
operator("squeeze(Tensor(a) self, int[1]? dim=None) -> Tensor(a)", shape="squeeze", tags=VIEW)
operator("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", shape="unsqueeze", tags=VIEW)
operator("select(Tensor(a) self, int dim, int index) -> Tensor(a)", shape="select", tags=VIEW)
operator(
    "slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)", shape="slice", tags=VIEW | HIDDEN
)
operator("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", shape="narrow", tags=VIEW)
operator("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", shape="diagonal", tags=VIEW)
operator("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", shape="unfold", tags=VIEW | METHOD_ONLY)
operator("movedim(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)", shape="movedim", tags=VIEW)
operator("unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", shape="unflatten", tags=VIEW)
operator("alias(Tensor(a) self) -> Tensor(a)", shape="alias", tags=VIEW | HIDDEN)
operator("view_as_real(Tensor(a) self) -> Tensor(a)", shape="view_as_real", tags=VIEW | FUNCTION_ONLY)
operator("view_as_complex(Tensor(a) self) -> Tensor(a)", shape="view_as_complex", tags=VIEW | FUNCTION_ONLY)
operator("detach(Tensor(a) self) -> Tensor(a)", shape="detach", tags=VIEW | NONDIFFERENTIABLE)
