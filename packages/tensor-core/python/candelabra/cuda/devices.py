"""The devices of CUDA, and what they can do."""

from __future__ import annotations

import sys

from candelabra import _C, accelerator, backends
from candelabra.accelerator import DeviceContext, DeviceProperties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor
    from candelabra._C import device as _Device
    from candelabra.types import Device

TYPE = "cuda"


def resolve(device: Any = None) -> _Device:
    return accelerator.resolve(device, TYPE)


def is_available() -> bool:
    """Tell whether an NVIDIA GPU can be used.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.is_available() in (True, False)
    True
    """
    return backends.is_available(TYPE)


def is_initialized() -> bool:
    """Tell whether the backend is loaded.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.is_initialized() in (True, False)
    True
    """
    return TYPE in _C.loaded_device_types()


def init() -> None:
    """Load the backend, which the first use of a device does by itself.

    Raises
    ------
    BackendError
        When it is not installed, or there is no driver or GPU.
    """
    backends.load(TYPE)


def device_count() -> int:
    """Return the number of GPUs; 0 where none can be used.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.device_count() >= 0
    True
    """
    return backends.device_count(TYPE) if is_available() else 0


def current_device() -> int:
    """Return the number of this thread's current GPU.

    Raises
    ------
    BackendError
        When there is none.
    """
    backends.load(TYPE)
    return accelerator.current_index(TYPE)


def set_device(device: Device | int) -> None:
    """Make a GPU this thread's current one; a negative number changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    _C.set_current_index(resolve(device))


class device(DeviceContext):
    """Makes a GPU the current one inside of a ``with``.

    Parameters
    ----------
    device : device, str, int or None
        None and a negative number change nothing.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device, TYPE)


class device_of(device):
    """Makes the GPU of a tensor the current one inside of a ``with``; a tensor elsewhere changes nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device.index if obj.device.type == TYPE else None)


def get_device_properties(device: Device | int = None) -> DeviceProperties:
    """Return what a GPU can do: ``name``, ``major``, ``minor``, ``total_memory``, ``multi_processor_count`` and more."""
    return DeviceProperties(resolve(device))


def get_device_name(device: Device | int = None) -> str:
    """Return the name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Device | int = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, for instance ``(9, 0)``."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """Return the architectures that the backend has kernels for, for instance ``["sm_80", "sm_90"]``; empty where it cannot be used."""
    if not is_available():
        return []
    described = (_C.backend_info(TYPE)["description"] or "").partition("\n")[0].partition(":")[2]
    return [f"sm_{number.strip()}" for number in described.split(" and ")[0].split(",") if number.strip()]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether the current GPU computes in bfloat16; all do that the backend supports."""
    return is_available() and get_device_properties().major >= 8


def can_device_access_peer(device: Device | int, peer_device: Device | int) -> bool:
    """Tell whether a GPU reaches the memory of another one."""
    return _C.can_access_peer(resolve(device), resolve(peer_device))


def synchronize(device: Device | int = None) -> None:
    """Wait until everything queued on a GPU is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current one by default.

    Raises
    ------
    BackendError
        When there is no GPU.
    RuntimeError
        When a kernel has failed; the message names it where it is known.
    """
    _C.synchronize(resolve(device))


def ipc_collect() -> None:
    """Let go of memory that was sent to other processes (`candelabra.multiprocessing`) and that none of them uses any more.

    A thread does the same, a moment after the last of them has let go.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.ipc_collect()
    """
    sharing = sys.modules.get("candelabra.multiprocessing.device_memory")
    if sharing is not None:
        sharing.collect()
