"""Layers whose input or output is a table: one row each."""

from __future__ import annotations

from functools import reduce
from typing import Any

import candelabra
from candelabra import Tensor

from .function import layer
from .shapes import with_batch


def _divide(tables: list[Tensor]) -> Tensor:
    numerator, denominator = tables
    return numerator / denominator


def _subtract(tables: list[Tensor]) -> Tensor:
    first, second = tables
    return first - second


def _rows(tables: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return two tensors of rows; vectors are one row."""
    first, second = (table.unsqueeze(0) if table.dim() == 1 else table for table in tables)
    return first, second


def _dot_product(tables: list[Tensor]) -> Tensor:
    first, second = _rows(tables)
    return (first * second).sum(1)


def _cosine(tables: list[Tensor]) -> Tensor:
    first, second = _rows(tables)
    # The constant is Torch 7's: vectors of zeros have the distance zero.
    squares = ((first * first).sum(1) + 1e-12) * ((second * second).sum(1) + 1e-12)
    return (first * second).sum(1) / squares.sqrt()


def _distance(tables: list[Tensor], norm: float) -> Tensor:
    first, second = _rows(tables)
    return (first - second).norm(norm, 1)


def _matmul(tables: list[Tensor], transA: bool = False, transB: bool = False) -> Tensor:
    first, second = tables
    if first.dim() not in (2, 3) or first.dim() != second.dim():
        raise RuntimeError("MM takes two matrices, or two batches of matrices")
    return (first.mT if transA else first) @ (second.mT if transB else second)


def _matvec(tables: list[Tensor], trans: bool = False) -> Tensor:
    matrix, vector = tables
    if matrix.dim() not in (2, 3) or vector.dim() != matrix.dim() - 1:
        raise RuntimeError("MV takes a matrix and a vector, or batches of both")
    return ((matrix.mT if trans else matrix) @ vector.unsqueeze(-1)).squeeze(-1)


def _join(tables: list[Tensor], dimension: int, nInputDims: int | None = None) -> Tensor:
    return candelabra.cat(list(tables), with_batch(dimension, tables[0], nInputDims))


def _split(input: Tensor, dimension: int, nInputDims: int | None = None) -> list[Tensor]:
    return list(input.unbind(with_batch(dimension, input, nInputDims)))


def _narrow(tables: list[Any], offset: int, length: int = 1) -> list[Any]:
    if not 0 <= offset <= len(tables) - length:
        raise IndexError(f"entries {offset} to {offset + length - 1} of a table of {len(tables)}")
    return list(tables[offset : offset + length])


def _flatten(table: Any) -> list[Any]:
    return [leaf for item in table for leaf in (_flatten(item) if isinstance(item, list) else [item])]


def _mixture(tables: list[Any], dim: int = 1) -> Tensor:
    gater, experts = tables
    if gater.dim() == 1:
        dim = 0
    if isinstance(experts, list):
        if gater.size(-1) != len(experts):
            raise RuntimeError("there is one output of the gater for each expert")
        experts = candelabra.stack(experts, dim)
    shape = [1] * experts.dim()
    if gater.dim() == 2:
        shape[0] = gater.size(0)
    shape[dim] = gater.size(-1)
    return (experts * gater.reshape(shape)).sum(dim)


CAddTable = layer(
    "CAddTable", lambda tables, inplace=False: reduce(candelabra.add, tables), "Add the tensors of a table."
)
CSubTable = layer("CSubTable", _subtract, "Subtract the second tensor of a table from the first.")
CMulTable = layer("CMulTable", lambda tables: reduce(candelabra.mul, tables), "Multiply the tensors of a table.")
CDivTable = layer("CDivTable", _divide, "Divide the first tensor of a table by the second.")
CMaxTable = layer(
    "CMaxTable", lambda tables: candelabra.stack(list(tables)).max(0)[0], "Compute the largest of a table's tensors."
)
CMinTable = layer(
    "CMinTable", lambda tables: candelabra.stack(list(tables)).min(0)[0], "Compute the smallest of a table's tensors."
)
DotProduct = layer("DotProduct", _dot_product, "Compute the dot products of the rows of two matrices.")
CosineDistance = layer("CosineDistance", _cosine, "Compute the cosines between the rows of two matrices.")
PairwiseDistance = layer("PairwiseDistance", _distance, "Compute the distances between the rows of two matrices.")
MM = layer("MM", _matmul, "Multiply two matrices, or two batches of matrices.")
MV = layer("MV", _matvec, "Multiply a matrix by a vector, or batches of both.")
JoinTable = layer(
    "JoinTable",
    _join,
    "Concatenate the tensors of a table. With `nInputDims`, further dimensions in front are a batch.",
    one_based=("dimension",),
)
SplitTable = layer(
    "SplitTable",
    _split,
    "Return a table of a tensor's slices. With `nInputDims`, further dimensions in front are a batch.",
    one_based=("dimension",),
)
SelectTable = layer(
    "SelectTable", lambda table, index: table[index], "Return one entry of a table.", one_based=("index",)
)
NarrowTable = layer("NarrowTable", _narrow, "Return a part of a table.", one_based=("offset",))
FlattenTable = layer("FlattenTable", _flatten, "Return the tensors of nested tables as one table.")
MixtureTable = layer(
    "MixtureTable",
    _mixture,
    "Weight experts, a table or a tensor with a dimension of experts, by a gater: `[gater, experts]`.",
    one_based=("dim",),
)
Index = layer(
    "Index",
    lambda tables, dimension: tables[0].index_select(dimension, tables[1].reshape(-1)),
    "Select slices of a tensor by a tensor of indices: `[tensor, indices]`.",
    one_based=("dimension",),
)
MaskedSelect = layer(
    "MaskedSelect",
    lambda tables: tables[0].masked_select(tables[1].bool()),
    "Select the elements of a tensor where a mask is set: `[tensor, mask]`.",
)
