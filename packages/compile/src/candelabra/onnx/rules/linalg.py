"""Rules of products."""

from __future__ import annotations

from typing import Any

from ..builder import Builder, Value
from .activations import gelu
from .table import rule


@rule("mm", "bmm", "mv", "dot")
def _product(b: Builder, self: Value, other: Value) -> str:
    return b.op("MatMul", self, other)


@rule("linear")
def _linear(b: Builder, input: Value, weight: Value, bias: Value | None = None) -> str:
    if input.rank == 2 and input.dtype.is_floating_point:
        return b.op("Gemm", input, weight, bias, transB=1)
    product = b.op("MatMul", input, b.transpose(weight, range(weight.rank)[::-1]))
    return product if bias is None else b.op("Add", product, bias)


def _scaled(b: Builder, value: Any, factor: float) -> str:
    return b.name(value) if factor == 1 else b.op("Mul", value, b.constant(factor, b.result.dtype))


@rule("addmm")
def _addmm(b: Builder, self: Value, mat1: Value, mat2: Value, *, beta: float = 1, alpha: float = 1) -> str:
    if self.dtype.is_floating_point:
        return b.op("Gemm", mat1, mat2, self if beta else None, alpha=float(alpha), beta=float(beta))
    product = _scaled(b, b.op("MatMul", mat1, mat2), alpha)
    return b.op("Add", product, _scaled(b, self, beta)) if beta else product


@rule("baddbmm")
def _baddbmm(b: Builder, self: Value, batch1: Value, batch2: Value, *, beta: float = 1, alpha: float = 1) -> str:
    product = _scaled(b, b.op("MatMul", batch1, batch2), alpha)
    return b.op("Add", product, _scaled(b, self, beta)) if beta else product


@rule("_addmm_activation")
def _addmm_activation(
    b: Builder, self: Value, mat1: Value, mat2: Value, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> str:
    product = b.op("Gemm", mat1, mat2, self, alpha=float(alpha), beta=float(beta))
    return gelu(b, product, "none") if use_gelu else b.op("Relu", product)


@rule("_cdist_forward")
def _cdist_forward(b: Builder, x1: Value, x2: Value, p: float) -> str:
    if p not in (1, 2):
        b.refuse(f"distances with p={p}")
    differences = b.op("Sub", b.unsqueeze(x1, x1.rank - 1), b.unsqueeze(x2, x2.rank - 2))
    return b.op("ReduceL1" if p == 1 else "ReduceL2", differences, b.constant([-1]), keepdims=0)
