"""``torch.storage``: private names of PyTorch's storage classes."""

from __future__ import annotations

from candelabra import storage
from candelabra.storage import CLASS_NAMES, UntypedStorage

__all__ = [
    "_StorageBase",
    "_dtype_to_storage_type_map",
    "_get_always_warn_typed_storage_removal",
    "_reset_warn_typed_storage_removal",
    "_set_always_warn_typed_storage_removal",
    "_storage_type_to_dtype_map",
    "_warn_typed_storage_removal",
]

#: All untyped storages are of one class, and its subclasses.
_StorageBase = UntypedStorage


def _dtype_to_storage_type_map() -> dict[object, str]:
    """Return the names of the classes by dtype."""
    import candelabra

    return {getattr(candelabra, name): class_name for name, class_name in CLASS_NAMES.items()}


def _storage_type_to_dtype_map() -> dict[str, object]:
    """Return the dtypes by the names of the classes."""
    return {class_name: dtype for dtype, class_name in _dtype_to_storage_type_map().items()}


def _get_always_warn_typed_storage_removal() -> bool:
    """Return whether each use of a typed storage warns, and not only the first."""
    return storage.removal_warning.always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Set whether each use of a typed storage warns, and not only the first."""
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    storage.removal_warning.always = always_warn


def _reset_warn_typed_storage_removal() -> None:
    """Let the next use of a typed storage warn again."""
    storage.removal_warning.given = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Warn that typed storages are deprecated, as their functions do."""
    storage.removal_warning()
