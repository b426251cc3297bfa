"""Translate PyTorch's objects to Candelabra's: tensors with their strides and aliasing, dtypes,
functions.
"""

from __future__ import annotations

import functools
import os
import types
from typing import Any

import numpy as np
import torch

import candelabra

#: Candelabra's device (PyTorch stays on the CPU).
DEVICE = os.environ.get("CANDELABRA_TEST_DEVICE", "cpu")


def settle() -> None:
    """Wait for the device, which raises the faults of kernels."""
    if DEVICE != "cpu":
        candelabra.accelerator.synchronize(DEVICE)


class NotTranslatable(Exception):
    """The sample contains an object that Candelabra does not support, such as a sparse tensor."""


class Translator:
    """Translates the values of one call. Tensors that share memory in PyTorch share it in
    Candelabra, too.

    Parameters
    ----------
    requires_grad
        Whether leaves keep requiring gradients.
    """

    def __init__(self, requires_grad: bool = False) -> None:
        self.requires_grad = requires_grad
        self.storages: dict[int, candelabra.Tensor] = {}
        self.tensors: dict[int, tuple[torch.Tensor, torch.Tensor, candelabra.Tensor]] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        return translate_structure(value, self)

    def tensor(self, tensor: torch.Tensor) -> candelabra.Tensor:
        """Return a tensor with the same values, sizes, strides, offset and aliasing."""
        if id(tensor) in self.tensors:
            return self.tensors[id(tensor)][2]
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested or tensor.device.type != "cpu":
            raise NotTranslatable(f"a {tensor.layout} tensor on {tensor.device}")
        if not hasattr(candelabra, dtype_name(tensor.dtype)):
            raise NotTranslatable(str(tensor.dtype))
        plain = tensor.detach().resolve_conj().resolve_neg()
        storage = plain.untyped_storage()
        key = storage.data_ptr() or id(tensor)
        base = self.storages.get(key)
        if base is None or storage.nbytes() == 0:
            flat = torch.empty(0, dtype=torch.uint8).set_(storage)
            base = candelabra.from_numpy(flat.numpy().copy() if storage.nbytes() else np.empty(0, np.uint8))
            base = base.to(DEVICE)
            self.storages[key] = base
        typed = (
            base.view(getattr(candelabra, dtype_name(tensor.dtype)))
            if base.numel()
            else candelabra.empty(0, dtype=dtype_of(tensor.dtype), device=DEVICE)
        )
        result = typed.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
        result = result.detach()
        if self.requires_grad and tensor.requires_grad:
            result.requires_grad_()
        # PyTorch's tensors are kept alive, so that their ids and addresses stay unique.
        self.tensors[id(tensor)] = (tensor, plain, result)
        return result


def translate_structure(value: Any, tensor: Any) -> Any:
    """Translate a structure; `tensor` translates the tensors in it."""
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, str) and value == "cpu":
        return DEVICE
    if isinstance(value, torch.device):
        return candelabra.device(DEVICE if value.type == "cpu" else str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        name = str(value).removeprefix("torch.")
        if not hasattr(candelabra, name):
            raise NotTranslatable(str(value))
        return getattr(candelabra, name)
    if isinstance(value, torch.Size):
        return candelabra.Size(value)
    if isinstance(value, torch.Generator):
        return candelabra.Generator(device=DEVICE).manual_seed(value.initial_seed())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(tensor(item) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(tensor(item) for item in value)
    if isinstance(value, dict):
        return {key: tensor(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(tensor(value.start), tensor(value.stop), tensor(value.step))
    if isinstance(value, functools.partial):
        return functools.partial(function(value.func), *tensor(list(value.args)), **tensor(value.keywords))
    if isinstance(value, torch.nn.PairwiseDistance):
        return candelabra.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if callable(value) and not isinstance(value, type):
        return function(value)
    return value


def dtype_name(dtype: torch.dtype) -> str:
    """Return ``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def dtype_of(dtype: torch.dtype) -> Any:
    """Return Candelabra's dtype of the same name."""
    if not hasattr(candelabra, dtype_name(dtype)):
        raise NotTranslatable(str(dtype))
    return getattr(candelabra, dtype_name(dtype))


def wrapper_set_seed(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Seed before each call, as the operator database does for random functions."""
    candelabra.manual_seed(42)
    return op(*args, **kwargs)


def function(source: Any) -> Any:
    """Return the same function for Candelabra: found by name, or a test's function with ``torch``
    replaced by Candelabra.
    """
    if isinstance(source, functools.partial):
        return functools.partial(function(source.func), *source.args, **source.keywords)
    if isinstance(source, types.FunctionType) and (source.__module__ or "").startswith("torch.testing"):
        scope = dict(source.__globals__)
        scope.update(torch=candelabra, wrapper_set_seed=wrapper_set_seed, F=candelabra.nn.functional)
        closure = source.__closure__ and tuple(
            types.CellType(translate_cell(cell.cell_contents)) for cell in source.__closure__
        )
        result = types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__, closure)
        result.__kwdefaults__ = source.__kwdefaults__
        return result
    for path in places(source):
        found = lookup(path)
        if found is not None:
            return found
    if places(source):
        raise NotTranslatable(f"there is no candelabra.{places(source)[0]}")
    return source


def translate_cell(value: Any) -> Any:
    """Translate a closure variable of a lambda of the database."""
    return Translator()(value)


def places(source: Any) -> list[str]:
    """Yield the names that a PyTorch function may have in Candelabra, the likeliest first."""
    name = getattr(source, "__name__", "")
    if not name:
        return []
    owner = getattr(source, "__objclass__", None)
    module = getattr(source, "__module__", None) or ""
    if owner is not None and owner.__name__ in ("TensorBase", "Tensor"):
        return [f"Tensor.{name}"]
    if getattr(source, "__qualname__", "").startswith("Tensor."):
        return [f"Tensor.{name}"]
    if not (module.startswith("torch") or type(source).__name__ == "builtin_function_or_method"):
        return []
    for prefix in ("linalg", "fft", "special"):
        if name.startswith(prefix + "_"):
            return [f"{prefix}.{name.removeprefix(prefix + '_')}"]
    return [f"nn.functional.{name}", name] if module == "torch.nn.functional" else [name, f"nn.functional.{name}"]


def lookup(path: str) -> Any:
    """Return the object of this path in ``candelabra``, or None."""
    found: Any = candelabra
    path = path.removeprefix("torch.")
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def back(tensor: candelabra.Tensor) -> torch.Tensor:
    """Return a copy of a Candelabra tensor as a PyTorch tensor."""
    plain = tensor.detach().cpu().contiguous()
    name = str(plain.dtype).removeprefix("candelabra.")
    if plain.numel() == 0:
        return torch.empty(tuple(plain.shape), dtype=getattr(torch, name))
    if name == "bfloat16":
        return torch.from_numpy(np.array(plain.view(candelabra.int16).numpy())).view(torch.bfloat16)
    return torch.from_numpy(np.array(plain.numpy()))


def doubled(value: Any) -> Any:
    """Return PyTorch values with all floating-point and complex tensors in double precision."""
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        if plain.is_floating_point():
            plain = plain.double()
        elif plain.is_complex():
            plain = plain.to(torch.complex128)
        else:
            return plain
        return plain.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else torch.complex128 if value.is_complex else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(doubled(item) for item in value))
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(doubled(item) for item in value)
    if isinstance(value, dict):
        return {key: doubled(item) for key, item in value.items()}
    return value
