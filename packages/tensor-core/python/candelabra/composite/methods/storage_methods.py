"""Methods of Storage that read, write and copy its bytes."""

from __future__ import annotations

from importlib import import_module

from candelabra import _C
from candelabra.catalogue import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from candelabra._C import Storage, Tensor
    from candelabra.types import Device

_Storage: Any = _C.Storage


def _method(implementation: Callable[..., Any]) -> Callable[..., Any]:
    setattr(_Storage, implementation.__name__, implementation)
    return implementation


def bytes_of(storage: Storage) -> Tensor:
    """Return a uint8 tensor on the memory of a storage."""
    return _C.tensor_on_storage(storage, _C.uint8)


_HOST_MEMORY, _IPC = 1, 64  # CB_CAP_HOST_MEMORY, CB_CAP_IPC


@_method
def __getitem__(self: Storage, key: Any) -> Any:
    """Return one byte as an int, or several as a new storage."""
    found = bytes_of(self)[key]
    return found.item() if found.ndim == 0 else OPERATORS["clone"](found).untyped_storage()


@_method
def __setitem__(self: Storage, key: Any, value: Any) -> None:
    """Set bytes."""
    bytes_of(self)[key] = value


@_method
def __iter__(self: Storage) -> Iterator[int]:
    """Iterate over the bytes."""
    return iter(bytes_of(self).tolist())


@_method
def tolist(self: Storage) -> list[int]:
    """Return the bytes as a list of ints.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensor([1, 2], dtype=candelabra.uint8).untyped_storage().tolist()
    [1, 2]
    """
    return bytes_of(self).tolist()


@_method
def fill_(self: Storage, value: int) -> Storage:
    """Set every byte."""
    bytes_of(self).fill_(value)
    return self


@_method
def copy_(self: Storage, source: Storage, non_blocking: bool | None = None) -> Storage:
    """Copy the bytes of another storage of the same size."""
    if self.nbytes() != source.nbytes():
        raise RuntimeError(f"copy_(): expected a storage of {self.nbytes()} bytes, but got one of {source.nbytes()}")
    bytes_of(self).copy_(bytes_of(source))
    return self


@_method
def clone(self: Storage) -> Storage:
    """Return a copy of the memory."""
    return OPERATORS["clone"](bytes_of(self)).untyped_storage()


@_method
def to(self: Storage, *, device: Device, non_blocking: bool = False) -> Storage:
    """Return a copy on a device; the storage itself if it is there."""
    moved = bytes_of(self).to(device=device)
    return self if moved.untyped_storage().data_ptr() == self.data_ptr() else moved.untyped_storage()


@_method
def cpu(self: Storage) -> Storage:
    """Return a copy on the CPU; the storage itself if it is there."""
    return to(self, device="cpu")


@_method
def untyped(self: Storage) -> Storage:
    """Return the storage itself, which has no dtype."""
    return self


@_method
def element_size(self: Storage) -> int:
    """Return the size of an element: 1, a byte."""
    return 1


@_method
def get_device(self: Storage) -> int:
    """Return the index of the device; -1 for the CPU."""
    return -1 if self.device.index is None else self.device.index


@_method
def is_shared(self: Storage) -> bool:
    """Return whether the memory is shared between processes. Device memory that other processes can
    open always counts as shared.
    """
    if _C.storage_owner(self) is not None:
        return True
    capabilities = _C.backend_info(self.device.type)["capabilities"]
    return not capabilities & _HOST_MEMORY and bool(capabilities & _IPC)


@_method
def share_memory_(self: Storage) -> Storage:
    """Move the memory of all its tensors to shared memory; candelabra-multiprocessing implements
    this.

    Memory that is not in the host's, of a CUDA device for one, stays as it is.
    """
    return import_module("candelabra.multiprocessing").share(self)


@_method
def is_pinned(self: Storage, device: Device = None) -> bool:
    """Return whether the memory is pinned, so that an accelerator can copy it asynchronously."""
    accelerator = import_module("candelabra.accelerator")
    return (device is not None or accelerator.is_available()) and _C.is_pinned(self, accelerator.resolve(device))


def _attribute(name: str, value: Callable[[Any], Any], doc: str) -> None:
    setattr(_Storage, name, property(value, doc=doc))


_attribute("is_cuda", lambda self: self.device.type == "cuda", "Whether the memory is on the device type ``cuda``.")
_attribute("is_sparse", lambda self: False, "False: there are no sparse tensors.")
_attribute("resizable", lambda self: False, "False: a storage keeps its size.")
