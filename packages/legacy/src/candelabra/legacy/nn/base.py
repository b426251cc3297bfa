"""What modules and criteria share: conversion to other types, and copies."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import candelabra
from candelabra import Tensor

_Object = TypeVar("_Object", bound="LegacyObject")

#: The floating-point types by their names in Torch 7, without the package and "Tensor".
_TYPES = {
    "Float": candelabra.float32,
    "Double": candelabra.float64,
    "Half": candelabra.float16,
    "BFloat16": candelabra.bfloat16,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def parse_type(name: Any) -> tuple[candelabra.dtype, str]:
    """Return the dtype and the device of a name like ``'torch.cuda.FloatTensor'``, or of a dtype.

    Raises
    ------
    ValueError
        If the name is not that of a type of floating-point tensors.
    """
    if isinstance(name, candelabra.dtype):
        if name not in _NAMES:
            raise ValueError(f"a layer's type is a floating-point type, got {name}")
        return name, "cpu"
    text = str(name)
    device = "cuda" if ".cuda." in text or text.startswith(("torch.Cuda", "candelabra.Cuda")) else "cpu"
    stem = text.rsplit(".", 1)[-1].removesuffix("Tensor")
    stem = stem.removeprefix("Cuda") or "Float"
    if not text.endswith("Tensor") or stem not in _TYPES:
        raise ValueError(f"unknown type {text!r}: use for example 'torch.FloatTensor' or 'torch.DoubleTensor'")
    return _TYPES[stem], device


def type_name(dtype: candelabra.dtype, device: str) -> str:
    """Return Torch's name of a type of tensors."""
    return f"torch.{'cuda.' if device == 'cuda' else ''}{_NAMES[dtype]}Tensor"


def default_type() -> str:
    """Return the name of the type that new tensors have."""
    return type_name(candelabra.get_default_dtype(), "cpu")


class LegacyObject:
    """The base of modules and criteria."""

    _type = type_name(candelabra.float32, "cpu")
    #: Attributes that Torch 7 counts from one, where Python counts from zero.
    _one_based: tuple[str, ...] = ()
    #: Torch 7's names of attributes that have another name here.
    _torch7_names: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        # The tape is of this object's tensors, not of its copy's.
        return {name: value for name, value in self.__dict__.items() if name != "_recording"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def type(self: _Object, type: Any = None, tensorCache: dict[Any, Any] | None = None) -> Any:
        """Convert all floating-point tensors, or return the name of the present type.

        Parameters
        ----------
        type
            A name such as ``'torch.DoubleTensor'`` or ``'torch.cuda.FloatTensor'``, or a dtype.
            Tensors of whole numbers, such as indices, keep their dtype.
        tensorCache
            Pass one dict to the conversions of several networks that share tensors.

        Returns
        -------
        LegacyObject or str
            This object; without an argument the name of its type.
        """
        if type is None:
            return self._type
        dtype, device = parse_type(type)
        cache = {} if tensorCache is None else tensorCache
        for name, value in self.__getstate__().items():
            self.__dict__[name] = _convert(value, dtype, device, cache)
        self.__dict__.pop("_recording", None)
        self._type = type_name(dtype, device)
        return self

    def float(self: _Object, tensorCache: dict[Any, Any] | None = None) -> _Object:
        """Convert to single precision."""
        return self.type(candelabra.float32, tensorCache)

    def double(self: _Object, tensorCache: dict[Any, Any] | None = None) -> _Object:
        """Convert to double precision."""
        return self.type(candelabra.float64, tensorCache)

    def cuda(self: _Object, tensorCache: dict[Any, Any] | None = None) -> _Object:
        """Convert to single precision on the GPU."""
        return self.type("torch.cuda.FloatTensor", tensorCache)

    def clone(self: _Object) -> _Object:
        """Return a copy that shares no tensor with this object."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__}"


def _convert(value: Any, dtype: candelabra.dtype, device: str, cache: dict[Any, Any]) -> Any:
    """Convert tensors; those that shared memory before share it afterwards."""
    if isinstance(value, Tensor):
        return _convert_tensor(value, dtype, device, cache)
    if isinstance(value, LegacyObject):
        if id(value) not in cache:
            cache[id(value)] = value
            value.type(type_name(dtype, device), cache)
        return value
    if isinstance(value, (list, tuple)) and not isinstance(value, candelabra.Size):
        return type(value)([_convert(item, dtype, device, cache) for item in value])
    return value


def _convert_tensor(tensor: Tensor, dtype: candelabra.dtype, device: str, cache: dict[Any, Any]) -> Tensor:
    target = dtype if tensor.is_floating_point() else tensor.dtype
    if tensor.dtype == target and tensor.device.type == device:
        return tensor
    if tensor.numel() == 0:
        return tensor.to(device=device, dtype=target)
    storage = tensor.untyped_storage()
    key = (storage.data_ptr(), tensor.dtype)
    if key not in cache:
        elements = storage.nbytes() // tensor.element_size()
        # The cache keeps the storage too: else another one could get its address.
        cache[key] = storage, candelabra.as_strided(tensor, (elements,), (1,), 0).to(device=device, dtype=target)
    converted = cache[key][1]
    result = candelabra.empty(0, dtype=target, device=device)
    return result.set_(converted.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
