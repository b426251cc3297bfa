"""Torch 7's modules as those of :mod:`candelabra.legacy.nn`, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

from .. import nn
from ..nn.base import LegacyObject
from ..nn.criterion import Criterion
from ..nn.module import Module, gradient_name
from .nodes import T7ReaderException

#: What a module keeps of its last pass. Places count from one in Torch 7's.
_TRANSIENT = frozenset({
    "buffer", "fgradInput", "finput", "gradInput", "indices", "noise", "output", "save_mean", "save_std",
})  # fmt: skip


def class_of(typename: str) -> type[LegacyObject] | None:
    """Return the class of a name like ``nn.Linear``; ``cudnn``'s layers are nn's."""
    package, _, name = typename.partition(".")
    if package not in ("nn", "cudnn") or name not in nn.__all__:
        return None
    found: type[LegacyObject] = getattr(nn, name)
    return found


def new_object(found: type[LegacyObject]) -> LegacyObject:
    """Return an object without the parameters that the constructor would allocate."""
    created = found.__new__(found)
    (Module if issubclass(found, Module) else Criterion).__init__(created)  # type: ignore[arg-type]
    return created


class Conversion:
    """What the modules of one file share while they are converted.

    One tensor or list of a file can be a part of many modules, which take a few bytes each. So
    copies are counted, and there is one gradient for one piece of memory.

    Parameters
    ----------
    length
        The bytes of the file.
    """

    def __init__(self, length: int) -> None:
        self.left = 4 * length + (1 << 20)
        self.gradients: dict[Any, Tensor] = {}
        self.lists: dict[int, list[Any]] = {}

    def spend(self, count: int) -> None:
        """Count the bytes of a copy."""
        self.left -= count
        if self.left < 0:
            raise T7ReaderException("the modules of the file take far more memory than the file")

    def from_one(self, value: Any) -> Any:
        """Return indices counted from zero. Negative ones count from the end."""
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value - 1 if value >= 0 else value
        if isinstance(value, Tensor):
            self.spend(value.numel() * value.element_size())
            return value - 1
        if isinstance(value, list):
            # Each list once: it can be within itself.
            if id(value) not in self.lists:
                self.lists[id(value)] = converted = []
                converted += [self.from_one(item) for item in value]
            return self.lists[id(value)]
        return value

    def sizes(self, value: Any, what: str) -> tuple[int, ...]:
        """Return the sizes of a view."""
        self.spend(8 * (value.numel() if isinstance(value, Tensor) else len(value)))
        sizes = value.tolist() if isinstance(value, Tensor) else value
        if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
            raise T7ReaderException(f"{what} is no list of whole numbers")
        return tuple(sizes)

    def gradient(self, parameter: Tensor) -> Tensor:
        """Return a gradient of zeros; parameters of the same memory have the same one."""
        key = parameter.data_ptr(), tuple(parameter.shape), tuple(parameter.stride())
        if key not in self.gradients:
            self.spend(parameter.numel() * parameter.element_size())
            self.gradients[key] = candelabra.zeros_like(parameter)
        return self.gradients[key]


def set_fields(target: LegacyObject, fields: dict[Any, Any], conversion: Conversion) -> None:
    """Give an object its attributes from a file.

    Raises
    ------
    T7ReaderException
        If an attribute cannot be what the file has for it.
    """
    kind = type(target)
    for field, value in fields.items():
        if not isinstance(field, str) or not field.isidentifier() or field.startswith("_") or field in _TRANSIENT:
            continue
        name = kind._torch7_names.get(field, field)
        # Methods stay what they are.
        if callable(getattr(kind, name, None)):
            continue
        if isinstance(value, Tensor):
            _check_memory(value, f"the {field} of an nn.{kind.__name__}")
        target.__dict__[name] = conversion.from_one(value) if name in kind._one_based else value
    adapt = _ADAPTED.get(kind.__name__)
    if adapt is not None:
        adapt(target, conversion)
    _check(target, conversion)


def _check_memory(tensor: Tensor, what: str) -> None:
    """Refuse tensors with more elements than the file, by strides of zero: copies are large."""
    if tensor.numel() > tensor.untyped_storage().nbytes() // tensor.element_size():
        raise T7ReaderException(f"{what} has more elements than the file")


def _to_one(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value + 1 if value >= 0 else value
    if isinstance(value, Tensor):
        return value + 1
    if isinstance(value, (list, tuple)):
        return [_to_one(item) for item in value]
    return value


def _check(target: LegacyObject, conversion: Conversion) -> None:
    """Check what methods rely on, and give parameters their gradients."""
    fields = target.__dict__
    for name in ("modules", "criterions"):
        wanted = Module if name == "modules" else Criterion
        children = fields.get(name)
        # An empty table is a dict: nothing tells it from a list.
        if children == {}:
            children = fields[name] = []
        if children is not None and (
            not isinstance(children, list) or not all(isinstance(child, wanted) for child in children)
        ):
            raise T7ReaderException(f"the {name} of an nn.{type(target).__name__} are not {name}")
    if isinstance(target, nn.Container):
        fields.setdefault("modules", [])
    if "size" in fields and isinstance(fields["size"], (Tensor, list)):
        fields["size"] = conversion.sizes(fields["size"], f"the size of an nn.{type(target).__name__}")
    if isinstance(target, Module):
        for name in target._parameter_names:
            _check_parameter(target, name, conversion)


def _check_parameter(target: Module, name: str, conversion: Conversion) -> None:
    parameter, gradient = getattr(target, name, None), getattr(target, gradient_name(name), None)
    if parameter is None:
        return
    if not isinstance(parameter, Tensor) or not parameter.is_floating_point():
        raise T7ReaderException(f"the {name} of an nn.{type(target).__name__} is not a floating-point tensor")
    if not isinstance(gradient, Tensor) or gradient.shape != parameter.shape or gradient.dtype != parameter.dtype:
        setattr(target, gradient_name(name), conversion.gradient(parameter))


# ---- classes whose files differ by more than names


def _adapt_dropout(target: Any, conversion: Conversion) -> None:
    # Files from before version 2 have no such field, and did not divide.
    if type(target) is nn.Dropout:
        target.v2 = bool(target.__dict__.get("v2", False))


def _adapt_batch_normalization(target: Any, conversion: Conversion) -> None:
    deviation = target.__dict__.pop("running_std", None)
    if not isinstance(target.eps, (int, float)):
        raise T7ReaderException(f"the eps of an nn.{type(target).__name__} is no number")
    if isinstance(deviation, Tensor) and deviation.is_floating_point() and "running_var" not in target.__dict__:
        # Older files have the inverse of the deviation.
        conversion.spend(deviation.numel() * deviation.element_size())
        target.running_var = deviation.pow(-2) - target.eps
    for name in ("running_mean", "running_var"):
        if not isinstance(target.__dict__.get(name), Tensor):
            raise T7ReaderException(f"an nn.{type(target).__name__} without a {name}")


def _adapt_partial_linear(target: Any, conversion: Conversion) -> None:
    network = target.__dict__.pop("network", None)
    if target.weight is None and isinstance(network, nn.Container):
        tables = [module for module in _all_modules(network) if isinstance(module, nn.LookupTable)]
        if len(tables) != 1:
            raise T7ReaderException("an nn.PartialLinear without its nn.LookupTable")
        target.weight, target.gradWeight = tables[0].weight, tables[0].gradWeight
    target.__dict__.pop("allcolumns", None)
    partition = target.__dict__.get("partition")
    if not isinstance(partition, Tensor):
        raise T7ReaderException("an nn.PartialLinear without its partition")
    conversion.spend(8 * partition.numel())
    target.partition = partition.long()


def _all_modules(network: Module) -> list[Module]:
    """Return a module and all below it, once each: a file can have a module within itself."""
    found, pending = {id(network): network}, [network]
    while pending:
        for child in pending.pop().modules or ():
            if isinstance(child, Module) and id(child) not in found:
                found[id(child)] = child
                pending.append(child)
    return list(found.values())


def _adapt_convolution(target: Any, conversion: Conversion) -> None:
    # Older files have one padding for both.
    padding = target.__dict__.pop("padding", None)
    if padding is not None and "padW" not in target.__dict__:
        target.padW = target.padH = padding
    for name in ("nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH"):
        if not isinstance(getattr(target, name, None), int):
            raise T7ReaderException(f"an nn.{type(target).__name__} without {name}")


def _adapt_unpooling(target: Any, conversion: Conversion) -> None:
    if not isinstance(target.__dict__.get("pooling"), Module):
        raise T7ReaderException(f"an nn.{type(target).__name__} without its pooling module")


_ADAPTED: dict[str, Callable[[Any, Conversion], None]] = {
    "Dropout": _adapt_dropout,
    "BatchNormalization": _adapt_batch_normalization,
    "SpatialBatchNormalization": _adapt_batch_normalization,
    "VolumetricBatchNormalization": _adapt_batch_normalization,
    "PartialLinear": _adapt_partial_linear,
    "SpatialConvolution": _adapt_convolution,
    "SpatialConvolutionMM": _adapt_convolution,
    "SpatialDilatedConvolution": _adapt_convolution,
    "SpatialMaxUnpooling": _adapt_unpooling,
    "VolumetricMaxUnpooling": _adapt_unpooling,
}


def fields_of(source: LegacyObject) -> dict[str, Any]:
    """Return an object's attributes as Torch 7's files have them."""
    kind = type(source)
    names = {own: other for other, own in kind._torch7_names.items()}
    return {
        names.get(name, name): _to_one(value) if name in kind._one_based else value
        for name, value in source.__dict__.items()
        if not name.startswith("_") and name not in _TRANSIENT and value is not None
    }
