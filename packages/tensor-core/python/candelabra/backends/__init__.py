"""Backends: their discovery, their loading by name at first use, and their memory.

A backend is a distribution with entry points in the group ``candelabra.backends``, one per device
type. An entry point is loaded when its device type is first used, so that a broken plugin only
breaks its own device type. ``python -m candelabra.backends`` lists what is installed.
"""

from __future__ import annotations

from _thread import RLock

from candelabra import _C

from .discovery import distribution_text, entry_of, installed, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any

    from candelabra._C import dtype
    from candelabra.types import Device

# Two threads may use a device for the first time at once; a plugin may use its own device while it
# is loaded.
_lock = RLock()

__all__ = [
    "cpu_fallback", "device_status", "fallback_calls", "reset_device", "set_option", "supports",
    "device_count", "device_properties", "empty_cache", "hookimpl", "installed", "is_available", "load", "memory_statistics",
    "reset_peak_statistics", "select", "set_memory_limit", "synchronize",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # pluggy is imported when a backend is loaded or written, not with this package.
    if name == "hookimpl":
        from .hookspec import hookimpl

        return hookimpl
    if name in ("cpu_fallback", "fallback_calls"):
        from . import fallback

        return getattr(fallback, name)
    if name in ("cuda", "cudnn"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(device_type: str) -> None:
    """Load the backend of a device type. The core calls this at the first use of the device type.

    Parameters
    ----------
    device_type
        For instance ``"cpu"``.

    Raises
    ------
    BackendError
        Where none is installed, several are and none is chosen (`select`), or the plugin fails. The
        next use tries again.
    BackendVersionError
        If the backend was built for another major version of the ABI.
    """
    with _lock:
        if device_type == "meta":
            _C.device("meta")  # the core has it
        elif device_type not in _C.loaded_device_types():
            _load_entry(entry_of(device_type))


def _load_entry(entry: EntryPoint) -> None:
    from .registrar import Registrar

    distribution = distribution_text(entry)
    registrar = Registrar(entry.name, distribution)
    try:
        plugin = entry.load()
        _call_hook(plugin, entry, registrar)
        registrar.commit()
    except _C.BackendError:
        raise
    # A plugin that calls sys.exit() must not end the program.
    except (Exception, SystemExit) as cause:
        raise _C.BackendError(
            f"the backend for device '{entry.name}' ({distribution}) could not be loaded: {type(cause).__name__}: {cause}"
        ) from cause


def _call_hook(plugin: Any, entry: EntryPoint, registrar: Any) -> None:
    import pluggy

    from . import hookspec

    manager = pluggy.PluginManager("candelabra")
    manager.add_hookspecs(hookspec)
    manager.register(plugin, name=entry.name)
    if not manager.hook.candelabra_register_backend.get_hookimpls():
        raise _C.BackendError(
            f"the plugin {entry.value} of {registrar.distribution} has no function candelabra_register_backend decorated by "
            "candelabra.backends.hookimpl"
        )
    manager.hook.candelabra_register_backend(registrar=registrar)


# ---- devices and memory, the same for every device type


def is_available(device_type: str) -> bool:
    """Return whether a device type can be used: its backend is installed, can be loaded and has a
    device.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.is_available("nowhere")
    False
    """
    try:
        return device_count(device_type) > 0
    except _C.BackendError:
        return False


def device_count(device_type: str) -> int:
    """Return the number of devices of a type; loads its backend.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.device_count("cpu")
    1
    """
    load(device_type)
    return _C.backend_info(device_type)["device_count"]


def device_properties(device: Device = "cpu") -> dict[str, Any]:
    """Return name, memory in bytes, number of processors and architecture of a device; 0 where
    unknown.
    """
    return _C.device_properties(device)


def memory_statistics(device: Device = "cpu") -> dict[str, int]:
    """Return the memory statistics of a device.

    Returns
    -------
    dict
        ``allocated`` and ``reserved`` bytes (in use, and including the cache), their peaks
        ``allocated_peak`` and ``reserved_peak``, the number of allocations ``allocation_count``,
        and those served from the cache, ``cache_hit_count``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.memory_statistics("cpu")["allocated"] >= 0
    True
    """
    return _C.memory_statistics(device)


def empty_cache(device: Device = "cpu") -> None:
    """Free the unused cached memory of a device."""
    _C.empty_cache(device)


def reset_peak_statistics(device: Device = "cpu") -> None:
    """Reset the peak statistics of a device."""
    _C.reset_peak_statistics(device)


def set_memory_limit(device: Device, limit: int | None) -> None:
    """Limit the memory of a device.

    Parameters
    ----------
    device
        A device whose backend supports limits.
    limit
        The limit in bytes. Allocations beyond it raise OutOfMemoryError. None removes the limit.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"set_memory_limit(): the limit must not be negative, but got {limit}")
    _C.set_memory_limit(device, -1 if limit is None else limit)


def synchronize(device: Device = "cpu") -> None:
    """Wait until all work queued on a device is done."""
    _C.synchronize(device)


def device_status(device: Device = "cpu") -> str:
    """Return the error that has made a device unusable, or an empty string.

    An asynchronous device fails after the call that caused it; this asks for such an error without
    a further call.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.device_status("cpu")
    ''
    """
    return _C.device_status(device)


def reset_device(device: Device) -> None:
    """Make a lost device usable again. All memory, streams and events of it are invalid afterwards.

    Raises
    ------
    NotImplementedError
        If the backend cannot.

    Examples
    --------
    >>> import candelabra
    >>> try:
    ...     candelabra.backends.reset_device("cpu")
    ... except NotImplementedError:
    ...     print("the CPU needs no reset")
    the CPU needs no reset
    """
    _C.reset_device(device)


def set_option(device_type: str, name: str, value: str) -> None:
    """Set an option of a backend, which its documentation describes.

    The environment variable ``CANDELABRA_TYPE_NAME`` does the same for a whole program.

    Parameters
    ----------
    device_type : str
        The device type; its backend need not be loaded yet.
    name, value : str
        The option, in any case, and its text.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.set_option("mydevice", "precision", "high")
    """
    _C.set_backend_option(device_type, name, value)


def supports(device: Device, operator: str, *dtypes: dtype) -> bool:
    """Tell whether a device has a kernel of an operator for these dtypes, without a call.

    Parameters
    ----------
    device : device or str
        The device.
    operator : str
        The name of the operator in the catalogue.
    *dtypes : dtype
        Of its tensor arguments, in order.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.supports("cpu", "add", candelabra.float32, candelabra.float32)
    True
    """
    return _C.supports(device, operator, list(dtypes))


_C.set_backend_loader(load)
