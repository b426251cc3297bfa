"""Sorting and selection along one dimension. NaN counts as larger than every number."""

from .declaration import operator

operator("sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)", shape="sort")
operator(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", shape="topk"
)
