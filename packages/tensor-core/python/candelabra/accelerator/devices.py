"""The accelerator's device type, its devices and their properties."""

from __future__ import annotations

import os

from candelabra import _C, backends
from candelabra.backends.discovery import declared_accelerators, has_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from candelabra._C import device
    from candelabra.types import Device

HOST_MEMORY = 1  # CB_CAP_HOST_MEMORY
_chosen: str | None = None
#: The accelerator that was found first; it stays.
_found: list[str] = []
#: Whether a declared accelerator has a device, as its probe said. Devices do not appear or
#: disappear while a process runs.
_present: dict[str, bool] = {}


# ---- which accelerator


def _wanted() -> str | None:
    return _chosen or os.environ.get("CANDELABRA_ACCELERATOR")


def _is_present(device_type: str) -> bool:
    """Tell from the metadata, and the probe that it may name, whether a device type can be used."""
    if device_type not in _present:
        _present[device_type] = has_device(device_type)
    return _present[device_type]


def _is_accelerator(device_type: str) -> bool:
    """Tell whether a loaded device type has memory of its own."""
    return device_type != "meta" and not _C.backend_info(device_type)["capabilities"] & HOST_MEMORY


def _find() -> str | None:
    """Return the device type of the accelerator, or None. This loads no backend."""
    loaded = _C.loaded_device_types()
    wanted = _wanted()
    if wanted:
        return wanted if wanted in loaded or _is_present(wanted) else None
    if not _found:
        candidates = {name for name in loaded if name != "cpu" and _is_accelerator(name)}
        candidates |= {name for name in declared_accelerators() if name not in loaded and _is_present(name)}
        _found[:] = sorted(candidates)[:1]
    return _found[0] if _found else None


def accelerator_type() -> str:
    """Return the device type of the accelerator, whose backend is loaded.

    Raises
    ------
    BackendError
        If it cannot be loaded.
    RuntimeError
        If there is no accelerator.
    """
    found = _find()
    if found is not None:
        backends.load(found)
        return found
    if wanted := _wanted():
        backends.load(wanted)  # says why it cannot be used
        return wanted
    for device_type in sorted(declared_accelerators()):
        backends.load(device_type)  # says why it has no device
        return device_type
    others = [name for name in sorted(backends.installed()) if name != "cpu"]
    hint = f"; candelabra.accelerator.use() takes one of {', '.join(others)}" if others else ""
    raise RuntimeError(
        "Cannot access accelerator device when none is available: no backend of one is installed "
        f"(pip install candelabra-backend-cuda){hint}"
    )


def use(device_type: str | None) -> None:
    """Select the device type of the accelerator; None restores the default.

    Parameters
    ----------
    device_type : str or None
        The device type of an installed backend, which may compute in host memory.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.device_count()
    1
    >>> candelabra.accelerator.use(None)
    """
    global _chosen
    if device_type is not None:
        backends.load(device_type)
    _chosen = device_type
    _found.clear()


def is_available() -> bool:
    """Return whether there is an accelerator.

    The answer imports no backend. It comes from the metadata of the installed distributions, which
    declare accelerators in the entry-point group ``candelabra.accelerators``, and from the probe
    that a declaration may name. A backend that declares nothing counts from its first use on.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.is_available() in (True, False)
    True
    """
    return _find() is not None


def device_count() -> int:
    """Return the number of devices of the accelerator; 0 if there is none. This loads its backend.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.device_count() >= 0
    True
    """
    found = _find()
    return 0 if found is None else backends.device_count(found)


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the device type of the accelerator as a device, or None if there is none. This loads
    its backend.

    Parameters
    ----------
    check_available : bool
        Ignored: a backend without devices is never the accelerator.

    Examples
    --------
    >>> import candelabra
    >>> found = candelabra.accelerator.current_accelerator()
    """
    return None if _find() is None else _C.device(accelerator_type())


# ---- devices


def resolve(device: Any, device_type: str | None = None) -> device:
    """Return the device that an argument stands for: None for the current device, an integer for
    its index, otherwise a device or its name.

    Without a device type, None and numbers mean the accelerator; a device may be of any
    accelerator, because several may be in use at once.

    Raises
    ------
    ValueError
        When the device is of another type, or is the host.
    RuntimeError
        If there is no such device.
    """
    if device is not None and (isinstance(device, bool) or not isinstance(device, int)):
        given = device if isinstance(device, _C.device) else _C.device(device)
        wanted = device_type or (given.type if _is_accelerator(given.type) else accelerator_type())
        if given.type != wanted:
            raise ValueError(f"{given.type} doesn't match the current accelerator {wanted}.")
        if isinstance(device, str) and ":" not in device:
            return _C.device(wanted, current_index(wanted))
        return given
    wanted = device_type or accelerator_type()
    if device is None:
        return _C.device(wanted, current_index(wanted))
    return _C.device(wanted, current_index(wanted) if device < 0 else device)


def current_index(device_type: str) -> int:
    """Return the index of this thread's current device of a type."""
    return _C.current_index(device_type)


def current_device_index() -> int:
    """Return the index of this thread's current device.

    Raises
    ------
    RuntimeError
        If there is no accelerator.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.current_device_index()
    0
    >>> candelabra.accelerator.use(None)
    """
    return current_index(accelerator_type())


def set_device_index(device: Device | int) -> None:
    """Set this thread's current device.

    Parameters
    ----------
    device : device, str or int
        A negative number changes nothing.

    Raises
    ------
    RuntimeError
        If there is no such device.
    """
    if isinstance(device, int) and device < 0:
        return
    _C.set_current_index(resolve(device))


current_device_idx = current_device_index
set_device_idx = set_device_index


class DeviceContext:
    """Context manager that sets the current device; the result of `device_index`.

    Parameters
    ----------
    device : device, str, int or None
        None and a negative number change nothing.
    device_type : str or None
        The device type that an integer refers to; None for the accelerator's.
    """

    def __init__(self, device: Any, device_type: str | None = None) -> None:
        self.idx = device
        self._type = device_type
        self._before: list[device | None] = []

    def __enter__(self) -> None:
        if self.idx is None or (isinstance(self.idx, int) and self.idx < 0):
            self._before.append(None)
            return
        wanted = resolve(self.idx, self._type)
        self._before.append(_C.device(wanted.type, current_index(wanted.type)))
        _C.set_current_index(wanted)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self._before.pop()
        if before is not None:
            _C.set_current_index(before)


device_index = DeviceContext


def synchronize(device: Device | int = None) -> None:
    """Wait until all work queued on a device is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.synchronize()
    >>> candelabra.accelerator.use(None)
    """
    _C.synchronize(resolve(device))


class DeviceProperties:
    """Properties of a device, as attributes: ``name``, ``total_memory``, ``multi_processor_count``,
    ``major``, ``minor`` and others that its backend reports. Instances with equal properties are
    equal.
    """

    def __init__(self, device: device) -> None:
        basic, details = _C.device_properties(device), _C.device_details(device)
        self.name: str = basic["name"]
        self.total_memory: int = basic["total_memory"]
        self.multi_processor_count: int = basic["processor_count"]
        self.architecture: int = basic["architecture"]
        uuid: bytes = details.pop("uuid")
        hexadecimal = uuid.hex()
        self.uuid = "-".join(
            (hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:16], hexadecimal[16:20], hexadecimal[20:])
        )
        self.__dict__.update(details)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the backend of this device does not tell '{name}'")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceProperties) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = {
            "name": repr(self.name), "major": self.major, "minor": self.minor, "total_memory": f"{self.total_memory // 2**20}MB",
            "multi_processor_count": self.multi_processor_count, "uuid": self.uuid, "L2_cache_size": f"{self.L2_cache_size // 2**20}MB",
        }  # fmt: skip
        return f"_DeviceProperties({', '.join(f'{name}={value}' for name, value in shown.items())})"


def get_device_properties(device: Device | int = None) -> DeviceProperties:
    """Return the properties of a device.

    Parameters
    ----------
    device : device, str or int, optional
        The current device by default.

    Returns
    -------
    DeviceProperties
        With attributes such as ``name``, ``total_memory`` (bytes) and ``multi_processor_count``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.accelerator.use("cpu")
    >>> candelabra.accelerator.get_device_properties().total_memory > 0
    True
    >>> candelabra.accelerator.use(None)
    """
    return DeviceProperties(resolve(device))


def get_device_capability(device: Device | int = None) -> dict[str, Any]:
    """Return the dtypes for which a device has kernels, as far as is known: ``{"supported_dtypes":
    {...}}``.
    """
    resolve(device)
    return {"supported_dtypes": {value for value in vars(_C).values() if isinstance(value, _C.dtype)}}
