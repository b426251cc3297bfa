"""Joining and rearranging tensors into new memory."""

from .declaration import COMPOSITE, FUNCTION_ONLY, INPLACE, operator

operator("cat(Tensor[] tensors, int dim=0) -> Tensor", shape="cat", tags=FUNCTION_ONLY)
operator("stack(Tensor[] tensors, int dim=0) -> Tensor", shape="stack", tags=FUNCTION_ONLY | COMPOSITE)
operator("flip(Tensor self, int[] dims) -> Tensor", shape="flip")
operator("tril(Tensor self, int diagonal=0) -> Tensor", shape="triangle", tags=INPLACE)
operator("triu(Tensor self, int diagonal=0) -> Tensor", shape="triangle", tags=INPLACE)
