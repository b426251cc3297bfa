"""What NVIDIA's management library (NVML, a part of the driver) tells of a GPU: load, temperature,
power, clocks, processes.

Functions and structures are those of NVIDIA's NVML API reference.
"""

from __future__ import annotations

import ctypes
import functools

from .devices import get_device_properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra.types import Device

LIBRARY = "libnvidia-ml.so.1"
_INSUFFICIENT_SIZE = 7  # NVML_ERROR_INSUFFICIENT_SIZE
_SM_CLOCK = 1  # NVML_CLOCK_SM
_UNKNOWN_MEMORY = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint),
    )  # fmt: skip


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise RuntimeError(f"{LIBRARY}, which comes with NVIDIA's driver, cannot be loaded: {error}") from error
    library.nvmlErrorString.restype = ctypes.c_char_p
    status = library.nvmlInit_v2()
    if status != 0:
        raise RuntimeError(f"nvmlInit: {library.nvmlErrorString(status).decode()}")
    return library


def _call(name: str, *arguments: Any) -> None:
    library = _library()
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: {library.nvmlErrorString(status).decode()}")


def _handle(device: Any) -> ctypes.c_void_p:
    # By its place on the bus: NVML counts GPUs without CUDA_VISIBLE_DEVICES, and in another order.
    told = get_device_properties(device)
    place = f"{told.pci_domain_id:08x}:{told.pci_bus_id:02x}:{told.pci_device_id:02x}.0"
    handle = ctypes.c_void_p()
    _call("nvmlDeviceGetHandleByPciBusId_v2", place.encode(), ctypes.byref(handle))
    return handle


def _number(name: str, device: Any, *arguments: Any) -> int:
    result = ctypes.c_uint()
    _call(name, _handle(device), *arguments, ctypes.byref(result))
    return result.value


def _load(device: Any) -> _Utilization:
    result = _Utilization()
    _call("nvmlDeviceGetUtilizationRates", _handle(device), ctypes.byref(result))
    return result


def utilization(device: Device | int = None) -> int:
    """Return in how many percent of the last moments a kernel ran on a GPU.

    Parameters
    ----------
    device : device, str or int, optional
        The current GPU by default.

    Raises
    ------
    BackendError
        When there is no GPU.
    RuntimeError
        When NVML is not there, or does not tell.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     print(f"{candelabra.cuda.utilization()} %, {candelabra.cuda.temperature()} degrees")  # doctest: +SKIP
    """
    return _load(device).gpu


def memory_usage(device: Device | int = None) -> int:
    """Return in how many percent of the last moments a GPU's memory was read or written; raises
    what `utilization` does.
    """
    return _load(device).memory


def device_memory_used(device: Device | int = None) -> int:
    """Return how many bytes of a GPU's memory are in use, whoever uses them; raises what
    `utilization` does.
    """
    result = _Memory()
    _call("nvmlDeviceGetMemoryInfo", _handle(device), ctypes.byref(result))
    return result.used


def temperature(device: Device | int = None) -> int:
    """Return the temperature of a GPU in degrees Celsius; raises what `utilization` does."""
    return _number("nvmlDeviceGetTemperature", device, 0)


def power_draw(device: Device | int = None) -> int:
    """Return the power that a GPU takes, in milliwatts; raises what `utilization` does."""
    return _number("nvmlDeviceGetPowerUsage", device)


def clock_rate(device: Device | int = None) -> int:
    """Return the clock of a GPU's multiprocessors in MHz; raises what `utilization` does."""
    return _number("nvmlDeviceGetClockInfo", device, _SM_CLOCK)


def list_gpu_processes(device: Device | int = None) -> str:
    """Return the processes that compute on a GPU, one a line, with the memory that they have;
    raises what `utilization` does.
    """
    handle, room = _handle(device), 32
    while True:
        count, found = ctypes.c_uint(room), (_Process * room)()
        status = _library().nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), found)
        if status != _INSUFFICIENT_SIZE:
            break
        room = max(2 * room, count.value + 8)
    if status != 0:
        raise RuntimeError(f"nvmlDeviceGetComputeRunningProcesses: {_library().nvmlErrorString(status).decode()}")
    from .devices import resolve

    lines = [f"GPU:{resolve(device).index}"]
    for process in found[: count.value]:
        memory = "an unknown amount of" if process.memory == _UNKNOWN_MEMORY else f"{process.memory / 2**20:12.3f} MB"
        lines.append(f"process {process.pid:>10d} uses {memory} GPU memory")
    return "\n".join(lines if count.value else [*lines, "no processes are running"])
