"""``torch.cuda``: the old types of tensors and storages on CUDA devices, and errors."""

from __future__ import annotations

import importlib
from typing import Any

import candelabra
from candelabra import AcceleratorError
from candelabra.composite.creation.legacy_types import TENSOR_TYPES, TensorType
from candelabra.storage import CLASS_NAMES, _LegacyStorage, _LegacyStorageMeta

#: The types by name. Tensors on a CUDA device are their instances.
_TYPES = {
    name: TensorType(
        name,
        (),
        {"__module__": "candelabra.cuda", "__doc__": kind.__doc__, "dtype": kind.dtype, "device_type": "cuda"},
    )
    for name, kind in TENSOR_TYPES.items()
}

_STORAGES = {
    name: _LegacyStorageMeta(
        name,
        (_LegacyStorage,),
        {"__module__": "candelabra.cuda", "dtype": dtype, "_dtype": dtype, "device_type": "cuda"},
    )
    for name, dtype in ((name, getattr(candelabra, of)) for of, name in CLASS_NAMES.items())
}


def _not_for_cuda(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Raise RuntimeError: only storages of the CPU are made in this way."""
    raise RuntimeError("Not available for CUDA storage")


for _kind in _STORAGES.values():
    for _constructor in ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename"):
        setattr(_kind, _constructor, classmethod(_not_for_cuda))

__all__ = ["CudaError", "DeferredCudaCallError", "_initialized", *_TYPES, *_STORAGES]
globals().update(_TYPES | _STORAGES)
#: What a call of the CUDA runtime that fails raises.
CudaError = AcceleratorError


class DeferredCudaCallError(Exception):
    """What was to be done once CUDA is used has failed."""


class _Initialized:
    """Whether a CUDA device has been used, asked when it is a condition."""

    def __bool__(self) -> bool:
        return bool(importlib.import_module("candelabra.cuda").is_initialized())


_initialized = _Initialized()
