"""Tensors from nothing: memory, constants and ranges."""

from .declaration import CORE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

_SIZE = "sequence of int: the sizes"
_DTYPE = "dtype, optional: the default dtype where not given"
_DEVICE = "device, optional: the default device where not given"
operator(
    "empty(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None) -> Tensor",
    shape="empty", tags=HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE,
    doc=document(
        "Make a tensor without setting its elements.",
        ">>> candelabra.ops.empty([2, 3]).shape\ncandelabra.Size([2, 3])",
        size=_SIZE, dtype=_DTYPE, device=_DEVICE, memory_format="memory_format, optional: row-major where not given",
        returns="Tensor: with whatever was in memory", out="",
    ),
)  # fmt: skip
operator(
    "empty_strided(int[] size, int[] stride, *, dtype? dtype=None, device? device=None) -> Tensor",
    shape="empty_strided", tags=HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE,
    doc=document(
        "Make a tensor of given sizes and strides without setting its elements.",
        ">>> candelabra.ops.empty_strided([2, 3], [1, 2]).stride()\n(1, 2)",
        size=_SIZE, stride="sequence of int: the strides, in elements", dtype=_DTYPE, device=_DEVICE,
        returns="Tensor: with whatever was in memory", out="",
    ),
)  # fmt: skip
operator(
    "fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", shape="mutate_self", tags=NO_OUT,
    doc=document(
        "Set every element to a number.",
        ">>> candelabra.zeros(2).fill_(3)\ntensor([3., 3.])",
        input="Tensor: what is filled", value="number or zero-dimensional Tensor: what it is filled with", returns="Tensor: the same tensor", out="",
    ),
)  # fmt: skip
operator(
    "arange(Scalar start, Scalar end, Scalar step, *, dtype dtype, device? device=None) -> Tensor",
    shape="arange", tags=HIDDEN | NONDIFFERENTIABLE,
    doc=document(
        "Make the numbers from `start` up to, not including, `end`; :func:`candelabra.arange` has defaults.",
        ">>> candelabra.ops.arange(0, 6, 2, dtype=candelabra.int64)\ntensor([0, 2, 4])",
        start="number: the first", end="number: where they end", step="number: from one to the next; not 0",
        dtype="dtype: of the result", device=_DEVICE, returns="Tensor: of ``ceil((end - start) / step)`` elements",
    ),
)  # fmt: skip
operator(
    "linspace(Scalar start, Scalar end, int steps, *, dtype dtype, device? device=None) -> Tensor",
    shape="linspace", tags=HIDDEN | NONDIFFERENTIABLE,
    doc=document(
        "Make evenly spaced numbers from `start` to `end`, both included; :func:`candelabra.linspace` has defaults.",
        ">>> candelabra.ops.linspace(0, 1, 3, dtype=candelabra.float32)\ntensor([0.0000, 0.5000, 1.0000])",
        start="number: the first", end="number: the last", steps="int: how many", dtype="dtype: of the result", device=_DEVICE,
        returns="Tensor: of `steps` elements",
    ),
)  # fmt: skip
