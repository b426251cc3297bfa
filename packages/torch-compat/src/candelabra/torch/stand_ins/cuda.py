"""``torch.cuda``: what the installed backends say of CUDA devices."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import backends

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties",
    "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "seed_all", "set_device", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether a backend for CUDA is installed and finds a device."""
    return "cuda" in backends.installed() and backends.is_available("cuda")


def device_count() -> int:
    """Number of CUDA devices."""
    return backends.device_count("cuda") if is_available() else 0


def is_initialized() -> bool:
    """Whether CUDA is in use: a backend is initialized when it is loaded."""
    return is_available()


def _needed(function: str) -> None:
    if not is_available():
        raise RuntimeError(
            f"torch.cuda.{function}(): no CUDA device is available; install candelabra-backend-cuda on a machine that has one"
        )


def _device(device: Any) -> Any:
    if device is None:
        return candelabra.device("cuda", 0)
    return candelabra.device("cuda", device) if isinstance(device, int) else candelabra.device(device)


def current_device() -> int:
    """Index of the device that is used where none is named."""
    _needed("current_device")
    return 0


def set_device(device: Any) -> None:
    """Choose the device that is used where none is named: the first is the only one that can be."""
    _needed("set_device")
    if (_device(device).index or 0) != 0:
        raise RuntimeError("torch.cuda.set_device(): name the device in each call, for instance device='cuda:1'")


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """What the backend tells of a device."""
    _needed("get_device_properties")
    return backends.device_properties(_device(device))


def get_device_name(device: Any = None) -> str:
    """Name of a device."""
    return str(get_device_properties(device).get("name", "CUDA"))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Version of a device's instruction set."""
    properties = get_device_properties(device)
    return int(properties.get("major", 0)), int(properties.get("minor", 0))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with."""
    return is_available()


def manual_seed(seed: int) -> None:
    """Seed the generator of the CUDA devices; nothing happens where there are none, as in PyTorch."""
    if is_available():
        candelabra.manual_seed(seed)


manual_seed_all = manual_seed


def seed_all() -> None:
    """Seed the generators of the CUDA devices with a number from the system."""
    if is_available():
        candelabra.seed()


def synchronize(device: Any = None) -> None:
    """Wait until the work on a device is done."""
    _needed("synchronize")
    backends.synchronize(_device(device))


def empty_cache() -> None:
    """Give memory that is kept for later back to the device; nothing happens where there is none."""
    if is_available():
        backends.empty_cache("cuda")


def memory_allocated(device: Any = None) -> int:
    """Bytes of a device's memory that tensors take up; 0 where there is no device."""
    return backends.memory_statistics(_device(device))["allocated"] if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have taken up; 0 where there is no device."""
    return backends.memory_statistics(_device(device))["peak_allocated"] if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes of a device's memory that are taken from it; 0 where there is no device."""
    return backends.memory_statistics(_device(device))["reserved"] if is_available() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin anew to look for the most bytes taken up."""
    if is_available():
        backends.reset_peak_statistics(_device(device))
