"""Sorting and selection along one dimension. NaN counts as larger than every number."""

from .declaration import document, operator

operator(
    "sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)", shape="sort",
    doc=document(
        "Sort along a dimension. NaN counts as larger than every number.",
        ">>> values, indices = candelabra.sort(candelabra.tensor([3, 1, 2]))\n>>> values, indices\n(tensor([1, 2, 3]), tensor([1, 2, 0]))",
        input="Tensor: of any shape, not complex", dim="int: the dimension that is sorted; the last by default",
        descending="bool: whether the largest comes first", stable="bool: whether equal elements keep their order",
        returns="(values, indices): of the shape of `input`; indices are int64", out="",
    ),
)  # fmt: skip
operator(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", shape="topk",
    doc=document(
        "Return the `k` largest or smallest elements along a dimension. NaN counts as larger than every number.",
        ">>> candelabra.topk(candelabra.tensor([3, 1, 2]), 2).values\ntensor([3, 2])",
        input="Tensor: of any shape, not complex", k="int: how many", dim="int: along which; the last by default",
        largest="bool: the largest, or else the smallest", sorted="bool: whether they must be in order",
        returns="(values, indices): with size `k` in that dimension; indices are int64",
        raises="RuntimeError: where `k` is larger than the dimension", out="",
    ),
)  # fmt: skip
