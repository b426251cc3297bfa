"""Reading and writing at positions given by tensors. Indices are int64 when a kernel sees them, and it checks each of them."""

from .declaration import COMPOSITE, DATA_DEPENDENT, HIDDEN, INPLACE, NO_OUT, NONDIFFERENTIABLE, NUMBERS, operator

operator("gather(Tensor self, int dim, Tensor index) -> Tensor", shape="gather")
operator("scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", shape="scatter", tags=INPLACE | NUMBERS)
operator("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", shape="scatter", tags=INPLACE)
operator("index_select(Tensor self, int dim, Tensor index) -> Tensor", shape="index_select")
operator(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", shape="index_add", tags=INPLACE
)
operator("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", shape="index_add", tags=INPLACE)
operator("index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", shape="index_fill", tags=INPLACE)
# Advanced indexing as in NumPy. A kernel gets one entry a dimension of self; the given ones are int64 (boolean masks became
# indices), broadcast to one shape. The indexed dimensions are replaced by that shape: in place when they are adjacent, else in front.
operator("index(Tensor self, Tensor?[] indices) -> Tensor", shape="index", tags=HIDDEN)
operator(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", shape="index_put", tags=INPLACE
)
operator("take(Tensor self, Tensor index) -> Tensor", shape="take")
operator("masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor", shape="masked_fill", tags=INPLACE | NUMBERS)
operator("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", shape="masked_scatter", tags=INPLACE)
operator("masked_select(Tensor self, Tensor mask) -> Tensor", shape="masked_select", tags=DATA_DEPENDENT)
# One row an element that is not zero: an int64 matrix of shape (count, self.ndim); as_tuple is a composite on top.
operator("nonzero(Tensor self) -> Tensor", shape="nonzero", tags=DATA_DEPENDENT | NONDIFFERENTIABLE)
operator("embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor", shape="embedding", tags=HIDDEN | COMPOSITE)
operator(
    "embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx=-1) -> Tensor",
    shape="embedding_backward", tags=HIDDEN | COMPOSITE,
)  # fmt: skip
