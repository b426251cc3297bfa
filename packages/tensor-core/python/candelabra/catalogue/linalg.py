"""Products of matrices and vectors."""

from .declaration import COMPOSITE, HIDDEN, INPLACE, operator

operator("mm(Tensor self, Tensor mat2) -> Tensor", shape="mm")
operator("bmm(Tensor self, Tensor mat2) -> Tensor", shape="bmm")
operator("mv(Tensor self, Tensor vec) -> Tensor", shape="mv", tags=COMPOSITE)
operator("dot(Tensor self, Tensor tensor) -> Tensor", shape="dot")
# beta * self + alpha * (a @ b). With beta == 0, self is not read.
operator("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", shape="addmm", tags=INPLACE)
operator(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", shape="baddbmm", tags=INPLACE
)
# input @ weight.T + bias, with any number of leading dimensions of input
operator("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", shape="linear", tags=HIDDEN | COMPOSITE)
