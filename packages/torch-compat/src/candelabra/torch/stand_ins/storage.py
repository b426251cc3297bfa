"""``torch.storage``: private names of PyTorch's storage classes."""

from __future__ import annotations

from candelabra.storage import CLASS_NAMES, UntypedStorage

__all__ = ["_StorageBase", "_dtype_to_storage_type_map", "_storage_type_to_dtype_map"]

#: All untyped storages are of one class, and its subclasses.
_StorageBase = UntypedStorage


def _dtype_to_storage_type_map() -> dict[object, str]:
    """Return the names of the classes by dtype."""
    import candelabra

    return {getattr(candelabra, name): class_name for name, class_name in CLASS_NAMES.items()}


def _storage_type_to_dtype_map() -> dict[str, object]:
    """Return the dtypes by the names of the classes."""
    return {class_name: dtype for dtype, class_name in _dtype_to_storage_type_map().items()}
