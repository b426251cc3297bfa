"""Creation of tensors: memory, constants and ranges."""

from .declaration import COMPOSITE, CORE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, ONE_VALUE, OVERWRITES, document, operator

_SIZE = "sequence of int: the sizes"
_DTYPE = "dtype, optional: by default the default dtype"
_DEVICE = "device, optional: by default the default device"
operator(
    "allocate(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None) -> Tensor",
    shape="empty", tags=HIDDEN | CORE | NO_OUT | NONDIFFERENTIABLE,
    doc=document(
        "Return an uninitialized tensor.",
        ">>> candelabra.ops.allocate([2, 3]).shape\ncandelabra.Size([2, 3])",
        size=_SIZE, dtype=_DTYPE, device=_DEVICE, memory_format="memory_format, optional: row-major by default",
        returns="Tensor: with arbitrary elements", out="",
    ),
)  # fmt: skip
# What calls of the factories mostly look like, done by the core. All their forms are in
# composite/creation/creation.py.
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
        "Return an uninitialized tensor of given sizes and strides.",
        ">>> candelabra.ops.empty_strided([2, 3], [1, 2]).stride()\n(1, 2)",
        size=_SIZE, stride="sequence of int: the strides, in elements", dtype=_DTYPE, device=_DEVICE,
        returns="Tensor: with arbitrary elements", out="",
    ),
)  # fmt: skip
operator(
    "fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", shape="fill", tier="required", tags=NO_OUT | ONE_VALUE | OVERWRITES,
    batching="fill",
    sees="The output is self, of any strides; value fits its dtype.",
    doc=document(
        "Fill the tensor with a number.",
        ">>> candelabra.zeros(2).fill_(3)\ntensor([3., 3.])",
        input="Tensor: the tensor to fill", value="number or zero-dimensional Tensor: the value", returns="Tensor: the same tensor", out="",
    ),
)  # fmt: skip
operator(
    "arange(Scalar start, Scalar end=nan, Scalar step=1, *, dtype? dtype=None, device? device=None) -> Tensor",
    shape="arange", tier="required", tags=HIDDEN | NONDIFFERENTIABLE,
    sees="The output is contiguous, of the dtype that was asked for; its size was computed from the numbers.",
    doc=document(
        "Return the numbers from `start` to `end`, exclusive; :func:`candelabra.arange` has defaults.",
        ">>> candelabra.ops.arange(0, 6, 2, dtype=candelabra.int64)\ntensor([0, 2, 4])",
        start="number: the first one", end="number: the end, exclusive", step="number: the difference of adjacent numbers; not 0",
        dtype="dtype: of the result", device=_DEVICE, returns="Tensor: of ``ceil((end - start) / step)`` elements",
    ),
)  # fmt: skip
operator(
    "linspace(Scalar start, Scalar end, int steps, *, dtype dtype, device? device=None) -> Tensor",
    shape="linspace", tags=HIDDEN | NONDIFFERENTIABLE,
    sees="The output is contiguous, of the dtype that was asked for, with steps elements.",
    doc=document(
        "Return evenly spaced numbers from `start` to `end`, inclusive; :func:`candelabra.linspace` has defaults.",
        ">>> candelabra.ops.linspace(0, 1, 3, dtype=candelabra.float32)\ntensor([0.0000, 0.5000, 1.0000])",
        start="number: the first one", end="number: the last", steps="int: the number of elements", dtype="dtype: of the result", device=_DEVICE,
        returns="Tensor: of `steps` elements",
    ),
)  # fmt: skip
operator(
    "_tril_triu_indices(int rows, int columns, int offset, bool upper, *, dtype dtype, device? device=None) -> Tensor",
    shape="_tril_triu_indices", tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees="The output is (2, count) and contiguous, int32 or int64; offset reaches no farther than the matrix.",
    doc=document(
        "Return the indices of a triangle of a matrix, row by row; :func:`candelabra.tril_indices` has defaults.",
        ">>> candelabra.ops._tril_triu_indices(2, 2, 0, True, dtype=candelabra.int64)\ntensor([[0, 0, 1],\n        [0, 1, 1]])",
        rows="int: of the matrix", columns="int: of the matrix", offset="int: the first diagonal of the triangle",
        upper="bool: whether the triangle is on and above it; else on and below it", dtype="dtype: int32 or int64", device=_DEVICE,
        returns="Tensor: of shape (2, count), row indices and column indices", out="",
    ),
)  # fmt: skip
