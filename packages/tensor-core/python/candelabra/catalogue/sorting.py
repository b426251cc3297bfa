"""Sorting and selection along one dimension. NaN counts as larger than every number."""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_AMONG = (
    "self has any strides and at least one dimension, and is not complex; dim is not empty. The output is int64 and"
    " has size 1 in dim. "
)

operator(
    "sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)", shape="sort", tier="required", jvp="gather",
    out="exact whole", batching="along",
    sees=(
        "self has any strides and is not complex; dim is wrapped. The outputs are dense, in the memory order of "
        "self. Tensors without dimensions are seen as one-dimensional of size 1."
    ),
    doc=document(
        "Sort along a dimension. NaN counts as larger than every number.",
        ">>> values, indices = candelabra.sort(candelabra.tensor([3, 1, 2]))\n>>> values, indices\n(tensor([1, 2, 3]), tensor([1, 2, 0]))",
        input="Tensor: of any shape, not complex", dim="int: the dimension to sort; by default the last",
        descending="bool: whether to sort in descending order", stable="bool: whether equal elements keep their order",
        returns="(values, indices): of the shape of `input`; indices are int64", out="",
    ),
)  # fmt: skip
operator(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", shape="topk", tier="fast", jvp="gather",
    out="exact whole", batching="along",
    sees=(
        "self has any strides, and is neither complex nor bool; dim is wrapped; the outputs are contiguous. Tensors"
        " without dimensions are seen as one-dimensional of size 1, and k is 1 then."
    ),
    doc=document(
        "Return the `k` largest or smallest elements along a dimension. NaN counts as larger than every number.",
        ">>> candelabra.topk(candelabra.tensor([3, 1, 2]), 2).values\ntensor([3, 2])",
        input="Tensor: of any shape, not complex", k="int: the number of elements", dim="int: the dimension; by default the last",
        largest="bool: whether to select the largest, else the smallest", sorted="bool: whether to sort them",
        returns="(values, indices): with size `k` in that dimension; indices are int64",
        raises="RuntimeError: if `k` is larger than the dimension", out="",
    ),
)  # fmt: skip
operator(
    "_searchsorted(Tensor sorted_sequence, Tensor values, bool right, bool out_int32, Tensor? sorter) -> Tensor",
    shape="_searchsorted", title="searchsorted", tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees=(
        "sorted_sequence, values and sorter are contiguous, the first two of one real dtype. sorted_sequence is "
        "one-dimensional or has the leading sizes of values. The kernel checks that the entries of sorter are in "
        "range."
    ),
    doc=document(
        "Return the indices at which to insert values into sorted sequences.",
        ">>> candelabra.ops._searchsorted(candelabra.tensor([1, 3, 5]), candelabra.tensor([3, 6]), False, False, None)\ntensor([1, 3])",
        sorted_sequence="Tensor: ascending along its last dimension; of one dimension, or with the leading sizes of `values`",
        values="Tensor: the values to insert", right="bool: whether to insert a value after equal elements",
        out_int32="bool: whether the result is int32 instead of int64",
        sorter="Tensor or None: the indices that sort the sequence, if it is not sorted", returns="Tensor: of the shape of `values`",
        out="",
    ),
)  # fmt: skip
operator(
    "_kthvalue_index(Tensor self, int dim, int rank, str among) -> Tensor", shape="_kthvalue_index", title="kthvalue",
    tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees=f"{_SEES_AMONG}The index is that of a stable sort.",
    doc=document(
        "Return the index of the element of a rank along a dimension, in the order of a stable sort. NaN counts as larger than every number.",
        '>>> candelabra.ops._kthvalue_index(candelabra.tensor([3.0, 1.0, 2.0]), 0, 0, "all")\ntensor([1])',
        input="Tensor: of at least one dimension, not complex", dim="int: the dimension",
        rank='int: the number of elements before it; only used if `among` is ``"all"``',
        among='str: ``"all"``; ``"median"``: the lower median, or NaN if there is one; ``"nanmedian"``: the lower median of the numbers',
        returns="Tensor: indices of dtype int64, with size 1 in that dimension", out="",
    ),
)  # fmt: skip
operator(
    "_mode_index(Tensor self, int dim) -> Tensor", shape="_mode_index", title="mode", tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees=(
        f"{_SEES_AMONG}It is the last index of the most frequent element, of the smallest among equally frequent "
        "ones; NaN is not equal to NaN."
    ),
    doc=document(
        "Return the last index of the most frequent element along a dimension, of the smallest among equally frequent ones.",
        ">>> candelabra.ops._mode_index(candelabra.tensor([2, 1, 2, 1, 3]), 0)\ntensor([3])",
        input="Tensor: of at least one dimension, not complex; NaN is not equal to NaN", dim="int: the dimension",
        returns="Tensor: indices of dtype int64, with size 1 in that dimension", out="",
    ),
)  # fmt: skip
operator(
    "_histc(Tensor self, int bins, float low, float high) -> Tensor", shape="_histc", title="histc",
    tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees=(
        "self is floating point, of any strides; low < high, and bins is from 1 to 2**30. Elements outside of "
        "them, and NaN, are not counted."
    ),
    doc=document(
        "Count elements in equal intervals between two numbers. The last interval includes its end.",
        ">>> candelabra.ops._histc(candelabra.tensor([1.0, 2.0, 2.0, 9.0]), 3, 0.0, 3.0)\ntensor([0., 1., 2.])",
        input="Tensor: floating point", bins="int: the number of intervals", low="float: the start of the first", high="float: the end of the last",
        returns="Tensor: one-dimensional, of the dtype of `input`", out="",
    ),
)  # fmt: skip
