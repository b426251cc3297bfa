"""``torch._C``: names of PyTorch's compiled module that programs use."""

from __future__ import annotations

from candelabra import Tensor, UntypedStorage

from .archives import PyTorchFileReader, PyTorchFileWriter
from .operators.dispatch_keys import DispatchKey, DispatchKeySet, _dispatch_has_kernel, _dispatch_keys

__all__ = [
    "DispatchKey", "DispatchKeySet", "PyTorchFileReader", "PyTorchFileWriter", "StorageBase", "TensorBase", "_TensorBase", "_TensorMeta",
    "_dispatch_has_kernel", "_dispatch_keys", "_log_api_usage_metadata", "_log_api_usage_once",
]  # fmt: skip

TensorBase = _TensorBase = Tensor
#: The class of the classes of tensors.
_TensorMeta = type(Tensor)
StorageBase = UntypedStorage


def _log_api_usage_once(event: str) -> None:
    """Do nothing, as PyTorch does without a logger: libraries tell that they are used."""
    if not isinstance(event, str):
        raise TypeError(f"_log_api_usage_once(): incompatible function arguments: {event!r} is no str")


def _log_api_usage_metadata(event: str, metadata_map: dict[str, str]) -> None:
    """Do nothing, as PyTorch does without a logger."""
    if not isinstance(event, str) or not isinstance(metadata_map, dict):
        raise TypeError("_log_api_usage_metadata(): incompatible function arguments: expected a str and a dict")
