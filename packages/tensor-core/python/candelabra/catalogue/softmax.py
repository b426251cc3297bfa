"""Softmax and its relatives along one dimension."""

from .declaration import COMPOSITE, HIDDEN, operator

for name in ("softmax", "log_softmax"):
    operator(f"{name}(Tensor self, int dim, dtype? dtype=None) -> Tensor", shape="softmax", tags=COMPOSITE)
    operator(f"{name}_backward(Tensor grad, Tensor output, int dim) -> Tensor", shape="softmax_backward", tags=HIDDEN | COMPOSITE)
