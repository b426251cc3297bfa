"""Tensors from nothing: memory, constants and ranges."""

from .declaration import COMPOSITE, CORE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, ONE_VALUE, document, operator

_SIZE = "sequence of int: the sizes"
_DTYPE = "dtype, optional: the default dtype where not given"
_DEVICE = "device, optional: the default device where not given"
operator(
    "allocate(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None) -> Tensor",
    shape="empty", tags=HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE,
    doc=document(
        "Make a tensor without setting its elements.",
        ">>> candelabra.ops.allocate([2, 3]).shape\ncandelabra.Size([2, 3])",
        size=_SIZE, dtype=_DTYPE, device=_DEVICE, memory_format="memory_format, optional: row-major where not given",
        returns="Tensor: with whatever was in memory", out="",
    ),
)  # fmt: skip
# What calls of the factories mostly look like, done by the core. All their forms are in
# composite/creation.py.
_FACTORY = "object layout=None, bool? requires_grad=False, bool? pin_memory=False"
_FACTORY_TAGS = HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE
operator(
    f"empty(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None, {_FACTORY}) -> Tensor",
    shape="empty_factory", tags=_FACTORY_TAGS,
)  # fmt: skip
operator(
    f"zeros(int[] size, *, dtype? dtype=None, device? device=None, {_FACTORY}) -> Tensor",
    shape="zeros",
    tags=_FACTORY_TAGS,
)
operator(
    f"ones(int[] size, *, dtype? dtype=None, device? device=None, {_FACTORY}) -> Tensor",
    shape="ones",
    tags=_FACTORY_TAGS,
)
operator(
    f"full(int[] size, Scalar fill_value, *, dtype? dtype=None, device? device=None, {_FACTORY}) -> Tensor",
    shape="full", tags=_FACTORY_TAGS,
)  # fmt: skip
_LIKE = f"dtype? dtype=None, device? device=None, memory_format? memory_format=None, {_FACTORY}"
for _name in ("empty", "zeros", "ones"):
    operator(f"{_name}_like(Tensor self, *, {_LIKE}) -> Tensor", shape=f"{_name}_like", tags=_FACTORY_TAGS | COMPOSITE)
operator(
    f"full_like(Tensor self, Scalar fill_value, *, {_LIKE}) -> Tensor",
    shape="full_like",
    tags=_FACTORY_TAGS | COMPOSITE,
)
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
    "fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", shape="fill", tags=NO_OUT | ONE_VALUE,
    batching="fill",
    sees="The output is self, of any strides; value fits its dtype.",
    doc=document(
        "Set every element to a number.",
        ">>> candelabra.zeros(2).fill_(3)\ntensor([3., 3.])",
        input="Tensor: what is filled", value="number or zero-dimensional Tensor: what it is filled with", returns="Tensor: the same tensor", out="",
    ),
)  # fmt: skip
operator(
    "arange(Scalar start, Scalar end=nan, Scalar step=1, *, dtype? dtype=None, device? device=None) -> Tensor",
    shape="arange", tags=HIDDEN | NONDIFFERENTIABLE,
    sees="The output is contiguous, of the dtype that was asked for; its size was computed from the numbers.",
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
    sees="The output is contiguous, of the dtype that was asked for, with steps elements.",
    doc=document(
        "Make evenly spaced numbers from `start` to `end`, both included; :func:`candelabra.linspace` has defaults.",
        ">>> candelabra.ops.linspace(0, 1, 3, dtype=candelabra.float32)\ntensor([0.0000, 0.5000, 1.0000])",
        start="number: the first", end="number: the last", steps="int: how many", dtype="dtype: of the result", device=_DEVICE,
        returns="Tensor: of `steps` elements",
    ),
)  # fmt: skip
operator(
    "_tril_triu_indices(int rows, int columns, int offset, bool upper, *, dtype dtype, device? device=None) -> Tensor",
    shape="_tril_triu_indices", tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees="The output is (2, count) and contiguous, int32 or int64; offset reaches no farther than the matrix.",
    doc=document(
        "Return the positions of a triangle of a matrix, row by row; :func:`candelabra.tril_indices` has defaults.",
        ">>> candelabra.ops._tril_triu_indices(2, 2, 0, True, dtype=candelabra.int64)\ntensor([[0, 0, 1],\n        [0, 1, 1]])",
        rows="int: of the matrix", columns="int: of the matrix", offset="int: the diagonal that the triangle begins with",
        upper="bool: the elements on and above it, or else on and below it", dtype="dtype: int32 or int64", device=_DEVICE,
        returns="Tensor: rows above, columns below", out="",
    ),
)  # fmt: skip
