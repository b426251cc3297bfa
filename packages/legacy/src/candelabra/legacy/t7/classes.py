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


def set_fields(target: LegacyObject, fields: dict[Any, Any]) -> None:
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
        if callable(getattr(kind, name, None)) and name != "maps":
            continue
        if isinstance(value, Tensor):
            _check_memory(value, f"the {field} of an nn.{kind.__name__}")
        target.__dict__[name] = _from_one(value, {}) if name in kind._one_based else value
    adapt = _ADAPTED.get(kind.__name__)
    if adapt is not None:
        adapt(target)
    _check(target)


def _from_one(value: Any, known: dict[int, Any]) -> Any:
    """Return indices counted from zero. Negative ones count from the end."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value - 1 if value >= 0 else value
    if isinstance(value, Tensor):
        return value - 1
    if isinstance(value, list):
        # Each list once: a file can have one in many places, also within itself.
        if id(value) not in known:
            known[id(value)] = converted = []
            converted += [_from_one(item, known) for item in value]
        return known[id(value)]
    return value


def _check_memory(tensor: Tensor, what: str) -> None:
    """Refuse tensors with more elements than the file, by strides of zero: copies are large."""
    if tensor.numel() > tensor.untyped_storage().nbytes() // tensor.element_size():
        raise T7ReaderException(f"{what} has more elements than the file")


def _sizes(value: Any, what: str) -> tuple[int, ...]:
    sizes = value.tolist() if isinstance(value, Tensor) else value
    if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
        raise T7ReaderException(f"{what} is no list of whole numbers")
    return tuple(sizes)


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


def _check(target: LegacyObject) -> None:
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
        fields["size"] = _sizes(fields["size"], f"the size of an nn.{type(target).__name__}")
    if isinstance(target, Module):
        for name in target._parameter_names:
            _check_parameter(target, name)


def _check_parameter(target: Module, name: str) -> None:
    parameter, gradient = getattr(target, name, None), getattr(target, gradient_name(name), None)
    if parameter is None:
        return
    if not isinstance(parameter, Tensor) or not parameter.is_floating_point():
        raise T7ReaderException(f"the {name} of an nn.{type(target).__name__} is not a floating-point tensor")
    if not isinstance(gradient, Tensor) or gradient.shape != parameter.shape or gradient.dtype != parameter.dtype:
        setattr(target, gradient_name(name), candelabra.zeros_like(parameter))


# ---- classes whose files differ by more than names


def _adapt_dropout(target: Any) -> None:
    # Files from before version 2 have no such field, and did not divide.
    if type(target) is nn.Dropout:
        target.v2 = bool(target.__dict__.get("v2", False))


def _adapt_batch_normalization(target: Any) -> None:
    deviation = target.__dict__.pop("running_std", None)
    if isinstance(deviation, Tensor) and "running_var" not in target.__dict__:
        # Older files have the inverse of the deviation.
        target.running_var = deviation.pow(-2) - target.eps
    for name in ("running_mean", "running_var"):
        if not isinstance(target.__dict__.get(name), Tensor):
            raise T7ReaderException(f"an nn.{type(target).__name__} without a {name}")


def _adapt_partial_linear(target: Any) -> None:
    network = target.__dict__.pop("network", None)
    if target.weight is None and isinstance(network, nn.Container):
        tables = [module for module in network.listModules() if isinstance(module, nn.LookupTable)]
        if len(tables) != 1:
            raise T7ReaderException("an nn.PartialLinear without its nn.LookupTable")
        target.weight, target.gradWeight = tables[0].weight, tables[0].gradWeight
    target.__dict__.pop("allcolumns", None)
    partition = target.__dict__.get("partition")
    if not isinstance(partition, Tensor):
        raise T7ReaderException("an nn.PartialLinear without its partition")
    target.partition = partition.long()


def _adapt_convolution(target: Any) -> None:
    # Older files have one padding for both.
    padding = target.__dict__.pop("padding", None)
    if padding is not None and "padW" not in target.__dict__:
        target.padW = target.padH = padding
    for name in ("nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH"):
        if not isinstance(getattr(target, name, None), int):
            raise T7ReaderException(f"an nn.{type(target).__name__} without {name}")


def _adapt_unpooling(target: Any) -> None:
    if not isinstance(target.__dict__.get("pooling"), Module):
        raise T7ReaderException(f"an nn.{type(target).__name__} without its pooling module")


_ADAPTED: dict[str, Callable[[Any], None]] = {
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
