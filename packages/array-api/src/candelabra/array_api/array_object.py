"""The array object of the array API standard 2024.12: a Tensor whose operators follow the standard
to the letter.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor
from candelabra.types import Device

if TYPE_CHECKING:
    from types import ModuleType

#: Versions of the standard that this namespace serves: each holds what the ones before it do.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class Array(Tensor):
    """A `Tensor` that follows the array API standard where PyTorch's semantics differ from it.

    It is a Tensor: on the tape, on any device, taken by every function of Candelabra. What differs:

    - Data types promote whatever the shapes: a zero-dimensional array counts as any other.
    - Slices may have a negative step. Integer arrays of every data type index (uint8 too, which is
      a mask in PyTorch).
    - ``//`` and ``%`` give what the standard asks for infinities and signed zeros.
    - ``size`` is the number of elements; it can still be called, as in PyTorch.
    - ``T`` is for matrices only.

    The functions of `candelabra.array_api` take Tensors too, and return Arrays. ``asarray(tensor)``
    makes one on the same memory; ``Tensor(array)`` goes back.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> x = xp.asarray([1, 2, 3])
    >>> x[::-1] // 2, x.size
    (Array([1, 1, 0]), 3)
    """

    __torch_function__ = candelabra._C._disabled_torch_function_impl

    __slots__ = ()

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The functions of the standard: the module `candelabra.array_api`."""
        return namespace(api_version)

    @property
    def size(self) -> Any:  # type: ignore[override]  # callable as well, so what Tensor.size gives is still there
        """Number of elements; ``x.size()`` and ``x.size(dim)`` give what they give of a Tensor."""
        return ElementCount.of(self)

    @property
    def T(self) -> Array:
        """Transpose of a matrix; ``mT`` transposes stacks of them."""
        if self.ndim != 2:
            raise ValueError(f"T: expected an array of 2 dimensions, got {self.ndim}; use mT or permute_dims()")
        return fresh(Tensor.transpose(self, 0, 1))

    @property
    def mT(self) -> Array:
        """Transpose of the last two dimensions."""
        if self.ndim < 2:
            raise ValueError(f"mT: expected an array of 2 dimensions or more, got {self.ndim}")
        return fresh(Tensor.transpose(self, -2, -1))

    def to_device(self, device: Device, /, *, stream: Any = None) -> Array:
        """Move the array to a device; where it is there already, it is returned itself."""
        if stream is not None:
            raise ValueError("to_device(): stream must be None: work is ordered by the backend's current stream")
        return as_array(Tensor.to(self, device), self)

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: builtins.bool | None = None,
    ) -> Any:
        """The memory as a DLPack capsule."""
        return Tensor.__dlpack__(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    # ---- indexing

    def __getitem__(self, key: Any, /) -> Array:
        key, flips = plain_key(self, key)
        if flips is None:
            return selected_backward(self, key)
        result = Tensor.__getitem__(self, key)
        return fresh(candelabra.flip(result, flips) if flips else result)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        plain, flips = plain_key(self, key)
        if flips is None:
            positions = numbering(self)[key]
            Tensor.put_(self, positions, _filled(value, self).expand(positions.shape))
        elif flips:
            part = Tensor.__getitem__(self, plain)
            Tensor.copy_(part, candelabra.flip(_filled(value, self).expand(part.shape), flips))
        else:
            Tensor.__setitem__(self, plain, value)

    # ---- conversions: those of Tensor, but for complex numbers, which the standard refuses

    def __int__(self) -> int:
        return int(_real_item(self, "int"))

    def __float__(self) -> float:
        return float(_real_item(self, "float"))

    # Equality is elementwise, and arrays are told apart by identity, as tensors are.
    __hash__ = Tensor.__hash__


def _real_item(array: Array, kind: str) -> Any:
    if array.dtype.is_complex:
        raise TypeError(f"{kind}(): an array of {array.dtype} has no {kind} value; take real() or imag() of it")
    return Tensor.item(array)


def _filled(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else candelabra.tensor(value, dtype=like.dtype, device=like.device)


class ElementCount(int):
    """The number of elements of an array, which can be called as `Tensor.size` is: with a
    dimension, or without one.
    """

    array: Array

    @classmethod
    def of(cls, array: Array) -> ElementCount:
        """The count of the elements of this array."""
        count = cls(array.numel())
        count.array = array
        return count

    def __call__(self, dim: int | None = None) -> Any:
        return Tensor.size(self.array) if dim is None else Tensor.size(self.array, dim)

    def __reduce__(self) -> Any:
        return int, (int(self),)


def namespace(api_version: str | None = None) -> ModuleType:
    """The module of the standard's functions, for the version asked for.

    Raises
    ------
    ValueError
        If the version is not one of those served.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__(): the array API standard {api_version!r} is not served; there are {', '.join(VERSIONS)}"
        )
    import candelabra.array_api

    return candelabra.array_api


# ---- from tensors to arrays


def fresh(tensor: Tensor) -> Array:
    """Turn a tensor that nobody else holds into an array: the object itself changes its class, so
    that it stays on the tape.
    """
    tensor.__class__ = Array  # type: ignore[assignment]
    return tensor  # type: ignore[return-value]


def as_array(result: Tensor, *inputs: Any) -> Array:
    """Turn a result into an array; an input that is returned as it is is not changed, but gets an
    alias, if it is not one.
    """
    if type(result) is Array:
        return result
    if builtins.any(result is one for one in inputs):
        result = (
            result.view(result.shape)
            if result.is_contiguous()
            else candelabra.as_strided(result, result.shape, result.stride())
        )
    return fresh(result)


# ---- keys


def plain_key(x: Tensor, key: Any) -> tuple[Any, list[int] | None]:
    """Rewrite a key so that it has no negative steps; the dimensions of the result which are then
    to be flipped.

    None stands for those, and the key is left as it is, where a negative step meets an integer
    array.
    """
    entries = key if type(key) is tuple else (key,)
    backward = arrays = False
    for entry in entries:
        kind = type(entry)
        if kind is slice:
            backward = backward or is_backward(entry)
        elif isinstance(entry, Tensor):
            arrays = True
    if not backward and not arrays:
        return key, []
    if arrays:
        if backward:
            return key, None
        return tuple(
            [index_array(x, entry, len(entries)) if isinstance(entry, Tensor) else entry for entry in entries]
        ), []
    return forward_key(x, entries)


def consumed(entry: Any) -> int:
    """How many dimensions of an array an entry of a key stands for; an ellipsis counts for none, it
    takes what is left.
    """
    if entry is None or entry is Ellipsis or type(entry) is bool:
        return 0
    return entry.ndim if isinstance(entry, Tensor) and entry.dtype is candelabra.bool else 1


def placed_entries(x: Tensor, entries: tuple[Any, ...]) -> list[tuple[Any, int]]:
    """Pair each entry of a key with the dimension of the array where it begins."""
    used = builtins.sum(map(consumed, entries))
    if used > x.ndim:
        raise IndexError(f"too many indices for array of dimension {x.ndim}")
    placed = []
    dim = 0
    for entry in entries:
        placed.append((entry, dim))
        dim += x.ndim - used if entry is Ellipsis else consumed(entry)
    return placed


def is_backward(entry: Any) -> builtins.bool:
    """Whether an entry of a key is a slice of negative step."""
    return type(entry) is slice and entry.step is not None and entry.step < 0


def forward_key(x: Tensor, entries: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """Turn slices of negative step into those of the same elements in ascending order; and where
    these end up in the result.
    """
    plain: list[Any] = []
    flips = []
    added = 0  # dimensions that the result has more, so far, than the array
    for entry, dim in placed_entries(x, entries):
        if is_backward(entry):
            indices = range(*entry.indices(x.shape[dim]))
            flips.append(dim + added)
            entry = slice(indices[-1], indices[0] + 1, -indices.step) if len(indices) else slice(0, 0)
        elif entry is None or type(entry) is bool:
            added += 1
        elif type(entry) is not slice and entry is not Ellipsis:
            added -= 1
        plain.append(entry)
    return tuple(plain), flips


def index_array(x: Tensor, entry: Tensor, entries: int) -> Tensor:
    """An array of a key as Candelabra's tensors take it: int64, or a mask of the shape of what it
    selects from.
    """
    if entry.dtype is candelabra.bool:
        # A mask without elements selects nothing, whatever the dimensions of the array that it
        # stands for.
        if entries == 1 and 0 < entry.ndim <= x.ndim and entry.shape != x.shape[: entry.ndim]:
            fits = builtins.all(mine in (0, theirs) for mine, theirs in zip(entry.shape, x.shape, strict=False))
            if fits:
                return candelabra.zeros(x.shape[: entry.ndim], dtype=candelabra.bool, device=x.device)
        return entry
    if entry.dtype is candelabra.int64 or entry.dtype.is_floating_point or entry.dtype.is_complex:
        return entry  # an index of floating-point numbers is refused where all are
    return entry.to(candelabra.int64)


def numbering(x: Tensor) -> Array:
    """Numbers from 0 in the shape of an array, by which any selection of its elements can be
    named.
    """
    return fresh(candelabra.arange(x.numel(), device=x.device).reshape(x.shape))


def selected_backward(x: Tensor, key: tuple[Any, ...] | Any) -> Array:
    """What a key with both negative steps and arrays selects: along slices that go backwards the
    array is flipped first.
    """
    flipped: list[int] = []
    plain: list[Any] = []
    for entry, dim in placed_entries(x, key if type(key) is tuple else (key,)):
        if is_backward(entry):
            indices = range(*entry.indices(x.shape[dim]))
            last = x.shape[dim] - 1
            flipped.append(dim)
            entry = slice(last - indices[0], last - indices[-1] + 1, -indices.step) if len(indices) else slice(0, 0)
        plain.append(entry)
    return fresh(candelabra.flip(x, flipped))[tuple(plain)]


# ---- operators


def install_operators() -> None:
    """Give Array its operators: each is the function of the standard that it stands for."""
    from . import elementwise, linear_algebra

    binary = {
        "add": elementwise.add,
        "sub": elementwise.subtract,
        "mul": elementwise.multiply,
        "truediv": elementwise.divide,
        "floordiv": elementwise.floor_divide,
        "mod": elementwise.remainder,
        "pow": elementwise.pow,
        "and": elementwise.bitwise_and,
        "or": elementwise.bitwise_or,
        "xor": elementwise.bitwise_xor,
        "lshift": elementwise.bitwise_left_shift,
        "rshift": elementwise.bitwise_right_shift,
    }
    compared = {
        "eq": elementwise.equal,
        "ne": elementwise.not_equal,
        "lt": elementwise.less,
        "le": elementwise.less_equal,
        "gt": elementwise.greater,
        "ge": elementwise.greater_equal,
    }
    unary = {
        "abs": elementwise.abs,
        "neg": elementwise.negative,
        "pos": elementwise.positive,
        "invert": elementwise.bitwise_invert,
    }
    for name, unary_function in unary.items():
        _install(f"__{name}__", _unary_operator(unary_function))
    for name, function in compared.items():
        _install(f"__{name}__", _operator(function))
    for name, function in binary.items():
        _install(f"__{name}__", _operator(function))
        _install(f"__r{name}__", _reflected(function))
        _install(f"__i{name}__", _in_place(function, f"__i{name}__"))
    _install("__matmul__", _matrix_operator(linear_algebra.matmul))
    _install("__rmatmul__", _matrix_operator(lambda x1, x2: linear_algebra.matmul(x2, x1)))
    _install("__imatmul__", _in_place(linear_algebra.matmul, "__imatmul__"))


def _install(name: str, function: Callable[..., Any]) -> None:
    function.__name__ = name
    function.__qualname__ = f"Array.{name}"
    setattr(Array, name, function)


_OPERANDS = (Tensor, bool, int, float, complex)


def _unary_operator(function: Callable[[Any], Array]) -> Callable[..., Any]:
    def operator(self: Array, /) -> Array:
        return function(self)

    return operator


def _operator(function: Callable[[Any, Any], Array]) -> Callable[..., Any]:
    def operator(self: Array, other: Array | complex, /) -> Array:
        return function(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    return operator


def _reflected(function: Callable[[Any, Any], Array]) -> Callable[..., Any]:
    def operator(self: Array, other: Array | complex, /) -> Array:
        return function(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    return operator


def _matrix_operator(function: Callable[[Any, Any], Array]) -> Callable[..., Any]:
    def operator(self: Array, other: Array, /) -> Array:
        return function(self, other) if isinstance(other, Tensor) else NotImplemented

    return operator


def _in_place(function: Callable[[Any, Any], Array], name: str) -> Callable[..., Any]:
    def operator(self: Array, other: Array | complex, /) -> Array:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        result = function(self, other)
        if result.dtype is not self.dtype:
            raise TypeError(
                f"{name}(): the result has dtype {result.dtype}, which {self.dtype} cannot hold; write x = x ... or cast with astype()"
            )
        if result.shape != self.shape:
            raise ValueError(
                f"{name}(): the result has shape {tuple(result.shape)}, and the array {tuple(self.shape)}, which cannot be enlarged in place"
            )
        Tensor.copy_(self, result)
        return self

    return operator
