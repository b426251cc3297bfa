"""``ops.aten``: operators by ATen's names and overloads, such as ``ops.aten.add.Tensor``.

They are Candelabra's functions and methods. All overloads of a name are one function here, which
distinguishes its arguments itself.
"""

from __future__ import annotations

import functools

import candelabra
from candelabra import _C
from candelabra.catalogue import OPERATORS

from .aten_overloads import ONLY_DEFAULT, OVERLOADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


#: What an overload knows of its operator.
_FACTS = frozenset({"functional", "parameter_types", "parameters", "schema"})


class OpOverload:
    """One overload of an operator.

    Parameters
    ----------
    packet
        The operator.
    overload
        The name of the overload.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ops.aten.add.Tensor(candelabra.ones(2), 1)
    tensor([2., 2.])
    >>> candelabra.ops.aten.add.Tensor
    <OpOverload(op='aten.add', overload='Tensor')>
    """

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket = packet
        self._overloadname = overload
        self._name = f"aten::{packet.__name__}" + ("" if overload == "default" else f".{overload}")
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = "candelabra.ops.aten"
        self.namespace = "aten"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator."""
        return self._overloadpacket

    @property
    def op(self) -> Callable[..., Any]:
        """The function that is called."""
        return self._overloadpacket.op

    @property
    def _schema(self) -> str:
        operator = OPERATORS.get(self._overloadpacket.__name__)
        if operator is None:
            raise AttributeError(f"{self._name} is composed of operators and has no schema of its own")
        return f"aten::{operator.schema}"

    def __getattr__(self, name: str) -> Any:
        if name in _FACTS:
            return getattr(self._overloadpacket.operator, name)
        raise AttributeError(f"'OpOverload' object has no attribute '{name}'", name=name, obj=self)

    def name(self) -> str:
        """Return the full name: ``aten::add.Tensor``."""
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._overloadpacket.op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _overload, (self._overloadpacket.__name__, self._overloadname)


class OpOverloadPacket:
    """An operator by ATen's name, whose attributes are its overloads.

    Parameters
    ----------
    name
        The name.
    op
        The function that is called.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ops.aten.mm.overloads()
    ['default', 'out']
    """

    def __init__(self, name: str, op: Callable[..., Any]) -> None:
        self.__name__ = name
        self._qualified_op_name = f"aten::{name}"
        self.op = op
        #: Candelabra's operator; None if its arguments are not ATen's.
        self.operator = None if name in _OTHER_ARGUMENTS else _operator(name, op)
        names = _OWN_OVERLOADS.get(name) or OVERLOADS.get(name)
        self._overload_names = names or (("default",) if name in ONLY_DEFAULT else ("default", "out"))

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._overload_names)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_") or name not in self._overload_names:
            raise AttributeError(
                f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'; it has "
                f"{', '.join(self._overload_names)}",
                name=name,
                obj=self,
            )
        made = OpOverload(self, name)
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._overload_names]

    def __iter__(self) -> Any:
        return iter(self._overload_names)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self


class AtenNamespace:
    """The operators by ATen's names: ``ops.aten``."""

    __name__ = "aten"
    name = "aten"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        function = None if name.startswith("__") else _function(name)
        if function is None:
            raise AttributeError(
                f"'_OpNamespace' 'aten' object has no attribute '{name}': Candelabra has no such operator",
                name=name,
                obj=self,
            )
        made = OpOverloadPacket(name, function)
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return sorted({*OPERATORS, *OVERLOADS, *vars(self)})

    def __repr__(self) -> str:
        return "<operators of aten>"


def _slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Return a slice along a dimension."""
    index = [slice(None)] * self.ndim
    index[dim] = slice(start, end, step)
    return self[tuple(index)]


def _size(self: Any, dim: int | None = None) -> Any:
    """Return the sizes, or one of them."""
    return self.size() if dim is None else self.size(dim)


def _stride(self: Any, dim: int | None = None) -> Any:
    """Return the strides, or one of them."""
    return self.stride() if dim is None else self.stride(dim)


def _assert_async(self: Any, assert_msg: str | None = None) -> None:
    """Raise RuntimeError if the only element is zero; at once here."""
    if not self.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raise RuntimeError if a number is zero."""
    if not self:
        raise RuntimeError(assert_msg)


def _convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int,
    *settings: bool,
) -> Any:  # fmt: skip
    """Convolve in one, two or three dimensions. The settings are those of PyTorch's backends."""
    dims = weight.ndim - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(f"convolution(): expected a weight of 3 to 5 dimensions, but got {weight.ndim}")
    if transposed:
        function = getattr(candelabra, f"conv_transpose{dims}d")
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(candelabra, f"conv{dims}d")(input, weight, bias, stride, padding, dilation, groups)


def _is_all_true(self: Any) -> Any:
    """Return whether all elements of a bool tensor are true."""
    if self.dtype is not _C.bool:
        raise RuntimeError(f"_is_all_true(): expected a tensor of the dtype bool, but got {self.dtype}")
    return self.all()


def _sparse(*arguments: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError for an operator of sparse tensors."""
    raise NotImplementedError(
        "operators of sparse tensors are not supported: there are no sparse tensors; all are strided"
    )


#: Operators of ATen that Python has as syntax or by other names.
_OWN: dict[str, Callable[..., Any]] = {
    "_assert_async": _assert_async, "_assert_scalar": _assert_scalar, "_is_all_true": _is_all_true,
    "_convolution": _convolution, "convolution": _convolution, "_conj": lambda self: self.conj(), "_pin_memory": lambda self, device=None: self.pin_memory(device),
    "_sparse_addmm": _sparse, "_sparse_mm_reduce_impl": _sparse,
    "slice": _slice, "sym_size": _size, "sym_stride": _stride, "sym_numel": _C.Tensor.numel, "lift_fresh": lambda self: self,
    "_local_scalar_dense": _C.Tensor.item, "_unsafe_view": _C.Tensor.view,
}  # fmt: skip


#: Operators whose arguments are others than ATen's.
_OTHER_ARGUMENTS = frozenset({*_OWN, "embedding", "grid_sampler", "native_dropout"})

#: The overloads of those of them that are not in the table.
_OWN_OVERLOADS = {
    "slice": ("Tensor", "Tensor_out"), "sym_size": ("default", "int"), "sym_stride": ("default", "int"), "sym_numel": ("default",),
    "_local_scalar_dense": ("default", "out"), "_unsafe_view": ("default", "out"), "lift_fresh": ("default",),
    "_assert_async": ("default", "msg"), "_assert_scalar": ("default",), "_is_all_true": ("default",), "_conj": ("default",),
    "_convolution": ("default", "deprecated", "out"), "convolution": ("default", "out"),
    "_pin_memory": ("default", "out"), "_sparse_addmm": ("default", "out"), "_sparse_mm_reduce_impl": ("default",),
}  # fmt: skip


@functools.cache
def _function(name: str) -> Callable[..., Any] | None:
    """Return what computes an operator: a function, a method, or the operator itself."""
    if name in _OWN:
        return _OWN[name]
    for package in ("fft", "linalg", "special"):
        found = getattr(getattr(candelabra, package), name.removeprefix(f"{package}_"), None)
        if name.startswith(f"{package}_") and callable(found):
            return found  # type: ignore[no-any-return]
    known = name in OPERATORS or name in OVERLOADS or name in ONLY_DEFAULT or hasattr(_C.Tensor, name)
    for place in (candelabra, _C.Tensor, candelabra.ops) if known or name in dir(candelabra) else ():
        found = vars(place).get(name) if place is candelabra.ops else getattr(place, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    try:
        functional = candelabra.nn.functional  # type: ignore[attr-defined, unused-ignore]
    except AttributeError:  # candelabra-nn is not installed
        return None
    found = getattr(functional.native, name, None) or getattr(functional, name, None)
    return found if callable(found) and not isinstance(found, type) else None


def _operator(name: str, op: Callable[..., Any]) -> Any:
    """Return the operator of a name, whose function may take arguments in other forms too."""
    return op if isinstance(op, _C.Operator) else OPERATORS.get(name)


def _overload(name: str, overload: str) -> Any:
    return getattr(getattr(ATEN, name), overload)


ATEN = AtenNamespace()
