"""Indexing: reading and writing at indices given by tensors. Indices are int64 when a kernel sees
them, and it checks each of them.
"""

from .declaration import (
    COMPOSITE,
    DATA_DEPENDENT,
    HIDDEN,
    INPLACE,
    NO_OUT,
    NONDIFFERENTIABLE,
    NUMBERS,
    WRAPPED_NUMBERS,
    document,
    operator,
)

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_ALONG = "dim is wrapped, and tensors without dimensions are seen as one-dimensional of size 1."
_SEES_SCATTERED = (
    "src has the dtype of self; its sizes are at least those of index, as are the sizes of self except in dim. "
    "An empty index is seen with as many dimensions as self."
)
_SEES_INDICES = (
    "indices has one entry for each dimension of self, null if that dimension is not indexed. The entries are "
    "int64 (bool masks became indices) and broadcast to one shape; negative indices are allowed. That shape "
    "replaces the indexed dimensions: in place if they are adjacent, else in front."
)
_SEES_BAGS = (
    "weight and gradients are floating point. indices and the other integer tensors are int64 and contiguous; the "
    "kernel checks their values. per_sample_weights are contiguous, and float32 for half precisions. padding_idx is"
    " -1 for none."
)

_RAISES = "IndexError: if an index is out of range"
# gather and scatter raise another type than the rest, as in PyTorch.
_RAISES_RUNTIME = "RuntimeError: if an index is out of range"
_INPUT = "Tensor: of any shape"
_DIM = "int: along which `index` counts"
_POSITIONS = "Tensor: indices of dtype int64, one-dimensional"
_COPY = "Tensor: a changed copy of `input`"

operator(
    "gather(Tensor self, int dim, Tensor index) -> Tensor", shape="gather", tier="required",
    out="exact apart", linear=("self",), batching="scatter",
    sees=f"{_SEES_ALONG} The sizes of index are at most those of self, except in dim.",
    doc=document(
        "Gather elements along a dimension by indices: for two dimensions and ``dim=1``, ``out[i, j] = input[i, index[i, j]]``.",
        ">>> candelabra.gather(candelabra.tensor([[1, 2], [3, 4]]), 1, candelabra.tensor([[0, 0], [1, 0]]))\ntensor([[1, 1],\n        [4, 3]])",
        input=_INPUT, dim=_DIM, index="Tensor: indices of dtype int64, of as many dimensions as `input`",
        returns="Tensor: of the shape of `index`", raises=_RAISES_RUNTIME,
    ),
)  # fmt: skip
operator(
    "scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", shape="scatter", tier="required", tags=INPLACE | NUMBERS,
    out="exact whole", batching="scatter",
    sees=f"{_SEES_ALONG} {_SEES_SCATTERED} A number as src has the sizes of index.",
    doc=document(
        "Scatter elements along a dimension by indices: for two dimensions and ``dim=1``, ``out[i, index[i, j]] = src[i, j]``.",
        ">>> candelabra.scatter(candelabra.zeros(3), 0, candelabra.tensor([2, 0]), candelabra.tensor([5.0, 6.0]))\ntensor([6., 0., 5.])",
        input=_INPUT, dim=_DIM, index="Tensor: indices of dtype int64, of as many dimensions as `input`",
        src="Tensor or number: the elements to write; at least of the shape of `index`",
        returns=_COPY + "; for repeated indices, one of the values", raises=_RAISES_RUNTIME,
        notes="With ``reduce=\"add\"`` or ``reduce=\"multiply\"`` the values are combined with the old ones.",
    ),
)  # fmt: skip
operator(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", shape="scatter", tier="required", tags=INPLACE,
    out="exact whole", autocast="widest on accelerators", linear=("self", "src"), batching="scatter",
    sees=f"{_SEES_ALONG} {_SEES_SCATTERED}",
    doc=document(
        "Add elements to those at indices along a dimension: for ``dim=1``, ``out[i, index[i, j]] += src[i, j]``.",
        ">>> candelabra.scatter_add(candelabra.zeros(3), 0, candelabra.tensor([2, 2]), candelabra.tensor([5.0, 6.0]))\ntensor([ 0.,  0., 11.])",
        input=_INPUT, dim=_DIM, index="Tensor: indices of dtype int64, of as many dimensions as `input`",
        src="Tensor: the elements to add, of the dtype of `input`", returns=_COPY, raises=_RAISES_RUNTIME,
    ),
)  # fmt: skip
operator(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    shape="scatter_reduce", tags=INPLACE | COMPOSITE,
    out="exact whole",
    sees=f"{_SEES_ALONG} {_SEES_SCATTERED} Half precisions are combined in float32 and rounded once.",
    doc=document(
        "Reduce the elements of `src` that are scattered to the same element of `input`.",
        ">>> zeros, index = candelabra.zeros(2), candelabra.tensor([0, 0, 1])\n"
        ">>> candelabra.scatter_reduce(zeros, 0, index, candelabra.tensor([1.0, 2.0, 3.0]), \"sum\")\ntensor([3., 3.])",
        input=_INPUT, dim=_DIM, index="Tensor: indices of dtype int64, of as many dimensions as `input`",
        src="Tensor: the elements to reduce, of the dtype of `input`", reduce='str: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``',
        include_self="bool: whether to include the elements of `input`", returns=_COPY, raises=_RAISES_RUNTIME,
        notes="Means of integers are rounded down. Elements that `index` does not refer to are unchanged.",
    ),
)  # fmt: skip
operator(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", shape="index_select", tier="fast",
    out="exact apart", linear=("self",), batching="index_select",
    sees=_SEES_ALONG,
    doc=document(
        "Select slices along a dimension by indices.",
        ">>> candelabra.index_select(candelabra.tensor([[1, 2], [3, 4]]), 0, candelabra.tensor([1, 1]))\ntensor([[3, 4],\n        [3, 4]])",
        input=_INPUT, dim="int: the dimension", index=_POSITIONS,
        returns="Tensor: of the shape of `input`, except in that dimension", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", shape="index_add", tier="fast", tags=INPLACE,
    out="exact whole", linear=("self", "source"), batching="index_write",
    sees=f"{_SEES_ALONG} source has the dtype of self, and as many slices as index has entries.",
    doc=document(
        "Add slices to those at indices of a dimension: ``out[index[i]] += alpha * source[i]``.",
        ">>> candelabra.index_add(candelabra.zeros(3), 0, candelabra.tensor([2, 2]), candelabra.tensor([5.0, 6.0]))\ntensor([ 0.,  0., 11.])",
        input=_INPUT, dim="int: the dimension", index=_POSITIONS,
        source="Tensor: one slice per index, of the dtype of `input`", alpha="number: the factor of `source`", returns=_COPY, raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", shape="index_copy", tags=INPLACE,
    out="exact whole", linear=("self", "source"), batching="index_write",
    sees=f"{_SEES_ALONG} source has the dtype of self, and as many slices as index has entries.",
    doc=document(
        "Write slices at indices of a dimension: ``out[index[i]] = source[i]``.",
        ">>> candelabra.index_copy(candelabra.zeros(3), 0, candelabra.tensor([2, 0]), candelabra.tensor([5.0, 6.0]))\ntensor([6., 0., 5.])",
        input=_INPUT, dim="int: the dimension", index=_POSITIONS, source="Tensor: one slice per index, of the dtype of `input`",
        returns=_COPY, raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", shape="index_fill", tags=INPLACE | WRAPPED_NUMBERS,
    out="exact whole", linear=("self",), batching="index_write",
    sees=_SEES_ALONG,
    doc=document(
        "Fill the slices at indices of a dimension with a number.",
        ">>> candelabra.index_fill(candelabra.zeros(3), 0, candelabra.tensor([0, 2]), 7)\ntensor([7., 0., 7.])",
        input=_INPUT, dim="int: the dimension", index=_POSITIONS, value="number: the value", returns=_COPY, raises=_RAISES,
    ),
)  # fmt: skip
# Advanced indexing as in NumPy. A kernel gets one entry a dimension of self; the given ones are
# int64 (boolean masks became indices), broadcast to one shape. The indexed dimensions are replaced
# by that shape: in place when they are adjacent, else in front.
operator(
    "index(Tensor self, Tensor?[] indices) -> Tensor", shape="index", tier="fast", tags=HIDDEN,
    linear=("self",), batching="index_rule",
    sees=_SEES_INDICES,
    doc=document(
        "Gather elements by indices of several dimensions, as ``x[i, j]``.",
        ">>> x = candelabra.tensor([[1, 2], [3, 4]])\n>>> candelabra.ops.index(x, [candelabra.tensor([0, 1]), candelabra.tensor([1, 0])])\ntensor([2, 3])",
        input=_INPUT, indices="sequence of Tensor or None: indices or bool masks, one per dimension; None selects a whole dimension",
        returns="Tensor: the indexed dimensions are replaced by the broadcast shape of the indices", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", shape="index_put", tier="fast", tags=INPLACE,
    out="whole", autocast="widest on accelerators", linear=("self", "values"), batching="index_put",
    sees=f"{_SEES_INDICES} values have the dtype of self and are broadcast to the indexed shape.",
    doc=document(
        "Write elements at indices of several dimensions, as ``x[i, j] = values``.",
        ">>> candelabra.index_put(candelabra.zeros(3), [candelabra.tensor([0, 0])], candelabra.tensor([1.0, 2.0]), accumulate=True)\n"
        "tensor([3., 0., 0.])",
        input=_INPUT, indices="sequence of Tensor or None: indices or bool masks, one per dimension",
        values="Tensor: the elements to write, broadcast to the indexed shape", accumulate="bool: whether to add to the old values",
        returns=_COPY, raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "take(Tensor self, Tensor index) -> Tensor", shape="take",
    out="exact apart", linear=("self",), batching="take_rule",
    sees=(
        "index is int64 and has the sizes of the output; it counts elements of self, which has any strides, in row-"
        "major order."
    ),
    doc=document(
        "Gather elements of the flattened tensor.",
        ">>> candelabra.take(candelabra.tensor([[1, 2], [3, 4]]), candelabra.tensor([0, 3]))\ntensor([1, 4])",
        input=_INPUT, index="Tensor: indices of dtype int64, of any shape", returns="Tensor: of the shape of `index`", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor", shape="masked_fill", tier="fast", tags=INPLACE | NUMBERS,
    batching="masked_fill",
    sees="mask is bool; value is one element of the dtype of self. All have the sizes of the output.",
    doc=document(
        "Fill the elements where a mask is true with a number.",
        ">>> x = candelabra.tensor([1.0, -2.0])\n>>> candelabra.masked_fill(x, x < 0, 0)\ntensor([1., 0.])",
        input=_INPUT, mask="Tensor: of dtype bool, broadcast with `input`", value="number or zero-dimensional Tensor: the value",
        returns=_COPY,
    ),
)  # fmt: skip
operator(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", shape="masked_scatter", tags=INPLACE,
    linear=("self", "source"),
    sees=(
        "mask is bool, broadcast with self; source has the dtype of self and is contiguous. The kernel checks that "
        "it has enough elements."
    ),
    doc=document(
        "Write the elements of `source`, in order, where a mask is true.",
        ">>> mask = candelabra.tensor([True, False, True])\n"
        ">>> candelabra.masked_scatter(candelabra.zeros(3), mask, candelabra.tensor([5.0, 6.0]))\ntensor([5., 0., 6.])",
        input=_INPUT, mask="Tensor: of dtype bool, broadcast with `input`",
        source="Tensor: of the dtype of `input`, with at least as many elements as the mask is true", returns=_COPY,
    ),
)  # fmt: skip
operator(
    "masked_select(Tensor self, Tensor mask) -> Tensor", shape="masked_select", tags=DATA_DEPENDENT,
    out="exact apart", linear=("self",), batching="masked_select",
    sees="mask is bool and, as self, broadcast to one shape; the kernel asks for the memory of the output.",
    doc=document(
        "Select the elements where a mask is true.",
        ">>> x = candelabra.tensor([1, -2, 3])\n>>> candelabra.masked_select(x, x > 0)\ntensor([1, 3])",
        input=_INPUT, mask="Tensor: of dtype bool, broadcast with `input`", returns="Tensor: one-dimensional, in row-major order",
    ),
)  # fmt: skip
# One row an element that is not zero: an int64 matrix of shape (count, self.ndim); as_tuple is a
# composite on top.
operator(
    "nonzero(Tensor self) -> Tensor", shape="nonzero", tags=DATA_DEPENDENT | NONDIFFERENTIABLE,
    out="exact",
    sees=(
        "self has any dtype and strides; the kernel asks for the memory of the output, int64 of shape (count, "
        "self.ndim)."
    ),
    doc=document(
        "Return the indices of the elements that are not zero, one per row; with ``as_tuple=True`` one tensor per dimension.",
        ">>> candelabra.nonzero(candelabra.tensor([0, 5, 6]))\ntensor([[1],\n        [2]])",
        input=_INPUT, returns="Tensor: of dtype int64 and shape (count, input.ndim), in row-major order",
    ),
)  # fmt: skip
operator(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor", shape="embedding", tier="fast", tags=HIDDEN | COMPOSITE,
    linear=("weight",), batching="embedding",
    sees="weight is a matrix of any strides; indices are int64.",
    doc=document(
        "Look up rows of a matrix.",
        ">>> candelabra.ops.embedding(candelabra.tensor([[1, 2], [3, 4]]), candelabra.tensor([1, 0, 1]))\n"
        "tensor([[3, 4],\n        [1, 2],\n        [3, 4]])",
        weight="Tensor: of shape (rows, features)", indices="Tensor: row indices, of any shape",
        padding_idx="int: the index of a row without gradient; -1 for none", returns="Tensor: of shape (*indices.shape, features)", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx=-1) -> Tensor",
    shape="embedding_backward", tier="fast", tags=HIDDEN | COMPOSITE,
    linear=("grad",), batching="embedding_backward",
    sees="grad has the sizes of indices and one more dimension; indices are int64.",
    doc=document(
        "Compute the gradient of embedding with respect to the matrix: the sum of the gradients of each row.",
        ">>> candelabra.ops.embedding_backward(candelabra.ones(3, 1), candelabra.tensor([1, 0, 1]), 2)\ntensor([[1.],\n        [2.]])",
        grad="Tensor: the gradient of the result", indices="Tensor: row indices", num_weights="int: the number of rows",
        padding_idx="int: the index of a row without gradient; -1 for none", returns="Tensor: of shape (num_weights, features)",
    ),
)  # fmt: skip
_BAGS = {
    "indices": "Tensor: row indices, one-dimensional",
    "mode": 'str: ``"sum"``, ``"mean"`` or ``"max"``',
    "per_sample_weights": "Tensor or None: a factor for each index",
    "scale_grad_by_freq": "bool: whether the gradient of a row is divided by how often it was looked up",
    "padding_idx": "int: the index of a row that is not part of any bag; -1 for none",
}
operator(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, str mode, Tensor? per_sample_weights, bool scale_grad_by_freq,"
    " bool include_last_offset, int padding_idx) -> (Tensor output, Tensor offset2bag, Tensor bag_size, Tensor max_indices)",
    shape="_embedding_bag", title="embedding_bag", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"weight has any strides. {_SEES_BAGS}",
    doc=document(
        "Compute the sum, mean or maximum of bags of rows.",
        ">>> table = candelabra.tensor([[1.0], [2.0]])\n"
        ">>> bags = candelabra.ops._embedding_bag(table, candelabra.tensor([0, 1, 1]), candelabra.tensor([0, 2]), \"sum\", None, False, False, -1)\n"
        ">>> bags.output\ntensor([[3.],\n        [2.]])",
        weight="Tensor: of shape (rows, features)", offsets="Tensor: the start of each bag", **_BAGS,
        include_last_offset="bool: whether the last offset is the end of the last bag",
        returns="(output, offset2bag, bag_size, max_indices): of shape (bags, features); the bag of each index; the sizes of the bags (zeros "
        "for sums); the row index of each maximum", raises="RuntimeError: if an index is out of range", out="",
    ),
)  # fmt: skip
operator(
    "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor max_indices, int num_weights, str mode,"
    " Tensor? per_sample_weights, bool scale_grad_by_freq, int padding_idx) -> Tensor",
    shape="_embedding_bag_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"grad is contiguous. {_SEES_BAGS}",
    doc=document(
        "Compute the gradient of embedding_bag with respect to the matrix.",
        ">>> one, none = candelabra.ones(1, 1), candelabra.zeros(1, dtype=candelabra.int64)\n"
        ">>> candelabra.ops._embedding_bag_backward(one, none, none, none, none, 2, \"sum\", None, False, -1)\n"
        "tensor([[1.],\n        [0.]])",
        grad="Tensor: the gradient of the result", offset2bag="Tensor: the second result", bag_size="Tensor: the third",
        max_indices="Tensor: the fourth", num_weights="int: the number of rows", **_BAGS, returns="Tensor: of shape (num_weights, features)",
        out="",
    ),
)  # fmt: skip
