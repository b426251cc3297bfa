"""How Candelabra's objects are written: as calls of the functions of PyTorch that make them."""

from __future__ import annotations

import sys
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.composite.methods.tensor_protocol import restored_tensor
from candelabra.composite.wrapper_subclasses import slots_of, wraps_others
from candelabra.storage import CLASS_NAMES, TypedStorage

from . import rebuilding

_Storage: Any = candelabra.UntypedStorage
_LAYOUT: Any = type(candelabra.strided)


def reduced(obj: Any, protocol: int) -> Any:
    """Return how an object is pickled, as ``__reduce_ex__`` does; NotImplemented for all that
    pickle writes as PyTorch's files have it.
    """
    if isinstance(obj, Tensor):
        return _tensor(obj, protocol)
    if isinstance(obj, candelabra.device):
        kind, _, index = str(obj).partition(":")
        return candelabra.device, ((kind, int(index)) if index else (kind,))
    if isinstance(obj, candelabra.Size):
        return candelabra.Size, (tuple(obj),)
    if isinstance(obj, _LAYOUT):
        return rebuilding._get_layout, (str(obj).replace("candelabra.", "torch."),)
    nn = sys.modules.get("candelabra.nn")
    if nn is not None and isinstance(obj, nn.Module):
        return _module(obj, protocol)
    return NotImplemented


def _tensor(tensor: Any, protocol: int) -> Any:
    method = type(tensor).__reduce_ex__
    parameter = sys.modules.get("candelabra.nn.parameter")
    if parameter is not None and isinstance(tensor, parameter.UninitializedTensorMixin):
        arguments: tuple[Any, ...] = (
            (tensor.requires_grad,) if isinstance(tensor, parameter.UninitializedParameter) else ()
        )
        return type(tensor), arguments
    is_parameter = parameter is not None and method is parameter.Parameter.__reduce_ex__
    if method is not Tensor.__reduce_ex__ and not is_parameter:
        # The class says itself how it is pickled, if it does not ask the method of tensors.
        found = tensor.__reduce_ex__(protocol)
        if not isinstance(found, tuple) or found[0] is not restored_tensor:
            return found
    state = _state(tensor)
    if is_parameter:
        arguments = (tensor.data, tensor.requires_grad, rebuilding.no_hooks())
        if not state:
            return rebuilding._rebuild_parameter, arguments
        return rebuilding._rebuild_parameter_with_state, (*arguments, state)
    make, arguments = _plain_tensor(tensor)
    if type(tensor) is Tensor and not state:
        return make, arguments
    return rebuilding._rebuild_from_type_v2, (make, type(tensor), arguments, state or None)


def _state(tensor: Any) -> Any:
    # A class may have its own state; otherwise it is the attributes that were set.
    own = type(tensor).__getstate__
    if own is not Tensor.__getstate__:
        return tensor.__getstate__()
    attributes = {name: value for name, value in tensor.__dict__.items() if name != "_device_stood_for"}
    slots = slots_of(tensor)
    return (attributes, slots) if slots else attributes


def _plain_tensor(tensor: Any) -> tuple[Any, tuple[Any, ...]]:
    requires_grad = tensor.requires_grad
    if wraps_others(tensor):
        sizes = (tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())
        arguments = (type(tensor), tensor.dtype, *sizes, tensor.layout, tensor.device, requires_grad)
        return rebuilding._rebuild_wrapper_subclass, arguments
    if tensor.device.type == "meta":
        described = (tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), requires_grad)
        return rebuilding._rebuild_meta_tensor_no_storage, described
    geometry = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
    memory = tensor.untyped_storage()
    if tensor.dtype.name in CLASS_NAMES:
        storage = TypedStorage(wrap_storage=memory, dtype=tensor.dtype, _internal=True)
        return rebuilding._rebuild_tensor_v2, (storage, *geometry, requires_grad, rebuilding.no_hooks())
    return rebuilding._rebuild_tensor_v3, (memory, *geometry, requires_grad, rebuilding.no_hooks(), tensor.dtype)


def _module(module: Any, protocol: int) -> Any:
    found = module.__reduce_ex__(max(protocol, 2))
    if len(found) < 3 or not isinstance(found[2], dict) or "_parameters" not in found[2]:
        return found
    state = dict(found[2])
    for table in ("_parameters", "_buffers", "_modules"):
        entries = dict(state.get(table) or {})
        # A registered name is an attribute as well, which PyTorch's modules do not have.
        for name, value in entries.items():
            if state.get(name) is value:
                del state[name]
        state[table] = entries
    state.pop("_hooked", None)
    state.setdefault("_is_full_backward_hook", None)
    nn: Any = sys.modules["candelabra.nn"]
    if isinstance(module, nn.RNNBase):
        state["_flat_weights"] = module._flat_weights
    elif isinstance(module, nn.TransformerEncoder):
        state.setdefault("use_nested_tensor", False)
    return (*found[:2], state, *found[3:])


class StorageIds:
    """The persistent ids of storages while one object is pickled, and the storages themselves."""

    def __init__(self, legacy: bool = False) -> None:
        self.storages: list[Any] = []
        self.dtypes: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._legacy = legacy

    def __call__(self, obj: Any) -> tuple[Any, ...] | None:
        if isinstance(obj, TypedStorage):
            memory, dtype = obj._untyped_storage, obj.dtype
            kind = getattr(candelabra, CLASS_NAMES[dtype.name])
        elif isinstance(obj, _Storage):
            memory, dtype, kind = obj, candelabra.uint8, _Storage
        else:
            return None
        if self._legacy and kind is _Storage:
            kind = getattr(candelabra, "ByteStorage")  # noqa: B009
        number = self._numbers.get(id(memory))
        if number is None:
            number = self._numbers[id(memory)] = len(self.storages)
            self.storages.append(memory)
            self.dtypes.append(dtype)
        elif dtype is not self.dtypes[number] and memory.nbytes():
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: save a clone() of one, "
                "or only one of them"
            )
        found = ("storage", kind, str(number), str(memory.device), memory.nbytes() // dtype.itemsize)
        return (*found, None) if self._legacy else found
