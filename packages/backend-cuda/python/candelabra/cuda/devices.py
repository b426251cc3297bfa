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
    """Makes the GPU of a tensor the current one inside of a ``with``; a tensor elsewhere changes
    nothing.
    """

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device.index if obj.device.type == TYPE else None)


def get_device_properties(device: Device | int = None) -> DeviceProperties:
    """Return what a GPU can do: ``name``, ``major``, ``minor``, ``total_memory``,
    ``multi_processor_count`` and more.
    """
    return DeviceProperties(resolve(device))


def get_device_name(device: Device | int = None) -> str:
    """Return the name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Device | int = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, for instance ``(9, 0)``."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """Return the architectures that the backend has kernels for, for instance ``["sm_80",
    "sm_90"]``; empty where it cannot be used.
    """
    if not is_available():
        return []
    described = (_C.backend_info(TYPE)["description"] or "").partition("\n")[0].partition(":")[2]
    return [f"sm_{number.strip()}" for number in described.split(" and ")[0].split(",") if number.strip()]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether the current GPU computes in bfloat16; all do that the backend supports."""
    return is_available() and get_device_properties().major >= 8


def is_tf32_supported() -> bool:
    """Tell whether the current GPU has TF32, the float32 of ten bits for products; all do that the
    backend supports.
    """
    return is_bf16_supported(including_emulation=False)


def get_gencode_flags() -> str:
    """Return how nvcc is told of the architectures that the backend has kernels for; empty where it
    cannot be used.

    Examples
    --------
    >>> import candelabra
    >>> isinstance(candelabra.cuda.get_gencode_flags(), str)
    True
    """
    numbers = [name.partition("_")[2] for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{number},code=sm_{number}" for number in numbers)


_SYNC_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Say what is done about calls that keep the program waiting for a GPU: copies to and from
    memory that is not pinned, ``item()``, operators whose shape depends on data,
    `Stream.synchronize`. Not about `synchronize` and events, which are there for waiting.

    Parameters
    ----------
    debug_mode : int or str
        0 or ``"default"``: nothing; 1 or ``"warn"``: a warning; 2 or ``"error"``: they raise
        RuntimeError before they do anything.

    Raises
    ------
    RuntimeError
        When it is none of them.
    BackendError
        When there is no GPU.
    """
    from candelabra.backends import cuda as switches

    mode = _SYNC_DEBUG_MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
    init()
    switches.set_switch("sync_debug_mode", int(mode))


def get_sync_debug_mode() -> int:
    """Return what `set_sync_debug_mode` was given, as a number; 0 at the start.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.get_sync_debug_mode()
    0
    """
    from candelabra.backends import cuda as switches

    return int(switches.switch("sync_debug_mode"))


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
    """Let go of memory that was sent to other processes (`candelabra.multiprocessing`) and that
    none of them uses any more.

    A thread does the same, a moment after the last of them has let go.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.ipc_collect()
    """
    sharing = sys.modules.get("candelabra.multiprocessing.device_memory")
    if sharing is not None:
        sharing.collect()
