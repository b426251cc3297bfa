"""Views: other sizes, strides and offsets on the same memory. The core implements them all; no
kernel is called.
"""

from .declaration import (
    COMPOSITE,
    CORE,
    FUNCTION_ONLY,
    HIDDEN,
    METHOD_ONLY,
    NO_OUT,
    NONDIFFERENTIABLE,
    VIEW,
    document,
    operator,
)

_VIEW = "Tensor: a view on the same memory"


def _viewed(sentence: str, example: str, **parameters: str) -> str:
    return document(sentence, example, **{"input": "Tensor: the input", "returns": _VIEW, **parameters}, out="")


def _method(sentence: str, example: str, **parameters: str) -> str:
    return document(sentence, example, **{"returns": _VIEW, **parameters}, out="")


operator(
    "view(Tensor(a) self, int[] size) -> Tensor(a)", shape="view", tags=VIEW | METHOD_ONLY,
    linear=("self",), batching="view",
    doc=_method(
        "View the elements in another shape, or as another dtype: ``view(size)`` or ``view(dtype)``.",
        ">>> candelabra.arange(4).view(2, -1)\ntensor([[0, 1],\n        [2, 3]])",
        size="sequence of int: the new sizes; one may be -1 and follows from the others",
        raises="RuntimeError: if the number of elements differs, or the strides do not allow a view; reshape copies then",
    ),
)  # fmt: skip
# Calls that are not recorded. All forms, and the calls to be recorded, are in
# composite/movement/views.py and composite/movement/splitting.py.
operator("reshape(Tensor(a) self, int[] shape) -> Tensor(a)", shape="reshape", tags=HIDDEN | CORE | COMPOSITE | NO_OUT)
operator(
    "split(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]", shape="split", tags=HIDDEN | CORE | COMPOSITE | NO_OUT
)  # fmt: skip
operator(
    "view_dtype(Tensor(a) self, dtype dtype) -> Tensor(a)", shape="view_dtype", title="view", tags=VIEW | HIDDEN | NONDIFFERENTIABLE,
    doc=_viewed(
        "View the bytes of the elements as another dtype; the last dimension changes if the sizes of the dtypes differ.",
        ">>> candelabra.ops.view_dtype(candelabra.tensor([1.0]), candelabra.int32)\ntensor([1065353216], dtype=candelabra.int32)",
        dtype="dtype: as which the bytes are read",
    ),
)  # fmt: skip
operator(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)", shape="as_strided", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "View the storage with any sizes, strides and offset.",
        ">>> candelabra.as_strided(candelabra.arange(4), (3, 2), (1, 1))\ntensor([[0, 1],\n        [1, 2],\n        [2, 3]])",
        size="sequence of int: the sizes", stride="sequence of int: the strides, in elements",
        storage_offset="int, optional: the first element; that of `input` by default",
        raises="RuntimeError: if the view would reach beyond the storage",
    ),
)  # fmt: skip
operator(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)", shape="expand", tags=VIEW | METHOD_ONLY,
    linear=("self",), batching="view",
    doc=_method(
        "View dimensions of size 1 as larger ones, and add dimensions in front; all their elements are the same memory.",
        ">>> candelabra.tensor([[1], [2]]).expand(2, 3)\ntensor([[1, 1, 1],\n        [2, 2, 2]])",
        size="sequence of int: the new sizes; -1 leaves a dimension as it is", implicit="bool: accepted for PyTorch's sake",
    ),
)  # fmt: skip
operator(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)", shape="permute", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Put the dimensions in another order.",
        ">>> candelabra.permute(candelabra.ones(2, 3, 4), (2, 0, 1)).shape\ncandelabra.Size([4, 2, 3])",
        dims="sequence of int: the old dimension that each new one is",
    ),
)  # fmt: skip
operator(
    "transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", shape="transpose", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Exchange two dimensions.",
        ">>> candelabra.transpose(candelabra.tensor([[1, 2]]), 0, 1)\ntensor([[1],\n        [2]])",
        dim0="int: the one", dim1="int: the other",
    ),
)  # fmt: skip
operator(
    "t(Tensor(a) self) -> Tensor(a)", shape="t", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Transpose a matrix; a tensor of fewer dimensions stays as it is.",
        ">>> candelabra.t(candelabra.ones(2, 3)).shape\ncandelabra.Size([3, 2])",
        raises="RuntimeError: if there are more than two dimensions",
    ),
)  # fmt: skip
# squeeze with no dim removes every dimension of size 1
operator(
    "squeeze(Tensor(a) self, int[1]? dim=None) -> Tensor(a)", shape="squeeze", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Remove dimensions of size 1.",
        ">>> candelabra.squeeze(candelabra.ones(1, 2, 1)).shape\ncandelabra.Size([2])",
        dim="int or sequence of int, optional: the dimensions to remove if they have size 1; all by default",
    ),
)  # fmt: skip
operator(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", shape="unsqueeze", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Insert a dimension of size 1.",
        ">>> candelabra.unsqueeze(candelabra.ones(2), 0).shape\ncandelabra.Size([1, 2])", dim="int: where it is in the result",
    ),
)  # fmt: skip
operator(
    "select(Tensor(a) self, int dim, int index) -> Tensor(a)", shape="select", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Select one index of a dimension, which is removed.",
        ">>> candelabra.select(candelabra.tensor([[1, 2], [3, 4]]), 1, 0)\ntensor([1, 3])",
        dim="int: the dimension", index="int: the index; negative ones count from the end",
    ),
)  # fmt: skip
operator(
    "slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)", shape="slice", tags=VIEW | HIDDEN,
    linear=("self",), batching="view",
    doc=_viewed(
        "Take a slice of a dimension, as ``x[start:end:step]`` does.",
        ">>> candelabra.ops.slice(candelabra.arange(6), 0, 1, None, 2)\ntensor([1, 3, 5])",
        dim="int: the dimension", start="int, optional: the first position", end="int, optional: where it ends", step="int: at least 1",
    ),
)  # fmt: skip
operator(
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", shape="narrow", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Select a range of indices of a dimension.",
        ">>> candelabra.narrow(candelabra.arange(6), 0, 2, 3)\ntensor([2, 3, 4])",
        dim="int: the dimension", start="int: the first position", length="int: the number of elements",
    ),
)  # fmt: skip
operator(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", shape="diagonal", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Return the diagonal of two dimensions, which becomes the last dimension.",
        ">>> candelabra.diagonal(candelabra.tensor([[1, 2], [3, 4]]))\ntensor([1, 4])",
        offset="int: 0 is the main diagonal, positive ones are above it", dim1="int: the rows", dim2="int: the columns",
    ),
)  # fmt: skip
operator(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", shape="unfold", tags=VIEW | METHOD_ONLY,
    linear=("self",), batching="view",
    doc=_method(
        "View sliding windows of a dimension; the last dimension of the result is within a window.",
        ">>> candelabra.arange(5).unfold(0, 3, 2)\ntensor([[0, 1, 2],\n        [2, 3, 4]])",
        dimension="int: the dimension", size="int: of each window", step="int: from one window to the next",
    ),
)  # fmt: skip
operator(
    "movedim(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)", shape="movedim", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Move dimensions to other positions; the others keep their order.",
        ">>> candelabra.movedim(candelabra.ones(2, 3, 4), 0, -1).shape\ncandelabra.Size([3, 4, 2])",
        source="int or sequence of int: where they are", destination="int or sequence of int: where they go",
    ),
)  # fmt: skip
operator(
    "unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", shape="unflatten", tags=VIEW,
    linear=("self",), batching="view",
    doc=_viewed(
        "Make several dimensions of one.",
        ">>> candelabra.unflatten(candelabra.ones(6), 0, (2, -1)).shape\ncandelabra.Size([2, 3])",
        dim="int: the dimension", sizes="sequence of int: the new sizes; one may be -1, which is inferred from the others",
    ),
)  # fmt: skip
operator(
    "alias(Tensor(a) self) -> Tensor(a)", shape="alias", tags=VIEW | HIDDEN,
    linear=("self",), batching="view",
    doc=_viewed("View a tensor as it is.", ">>> candelabra.ops.alias(candelabra.ones(1))\ntensor([1.])"),
)  # fmt: skip
operator(
    "view_as_real(Tensor(a) self) -> Tensor(a)", shape="view_as_real", tags=VIEW | FUNCTION_ONLY,
    linear=("self",), batching="view",
    doc=_viewed(
        "View complex numbers as pairs of real ones, in a last dimension of size 2.",
        ">>> candelabra.view_as_real(candelabra.tensor([1 + 2j]))\ntensor([[1., 2.]])",
    ),
)  # fmt: skip
operator(
    "view_as_complex(Tensor(a) self) -> Tensor(a)", shape="view_as_complex", tags=VIEW | FUNCTION_ONLY,
    autocast="float32", linear=("self",), batching="view",
    doc=_viewed(
        "View pairs of real numbers, in a last dimension of size 2, as complex ones.",
        ">>> candelabra.view_as_complex(candelabra.tensor([[1.0, 2.0]]))\ntensor([1.+2.j])",
    ),
)  # fmt: skip
operator(
    "detach(Tensor(a) self) -> Tensor(a)", shape="detach", tags=VIEW | NONDIFFERENTIABLE,
    batching="view",
    doc=_viewed(
        "Return a tensor on the same memory that autograd does not track.",
        ">>> candelabra.detach(candelabra.ones(1, requires_grad=True)).requires_grad\nFalse",
        returns="Tensor: on the same memory, with the same version counter",
    ),
)  # fmt: skip
