"""Names of ``torch`` itself: the version, ``compile``, which does nothing, and others."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra.accelerator import Event, Stream
from candelabra.amp import autocasting as _autocast

from .files import load, save
from .jit import fork, wait
from .symbols import SymBool, SymFloat, SymInt
from .version import __version__

__all__ = [
    "Event", "Stream", "SymBool", "SymFloat", "SymInt", "__version__", "autocast_decrement_nesting", "autocast_increment_nesting", "compile",
    "compiled_with_cxx11_abi", "fork", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "get_device_module", "get_file_path", "has_lapack",
    "has_mkl", "has_openmp", "has_spectral", "init_num_threads", "is_autocast_cpu_enabled", "load", "save", "set_anomaly_enabled", "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled", "set_autocast_gpu_dtype", "thread_safe_generator", "wait",
]  # fmt: skip

#: What the CPU backend has.
has_lapack = has_mkl = has_openmp = has_spectral = "cpu" in candelabra.backends.installed()


def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function or module unchanged, because there is no compiler yet.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.package import compile
    >>> compile(lambda x: x + 1)(1)
    2
    """
    if model is None:
        return lambda decorated: decorated
    return model


def compiled_with_cxx11_abi() -> bool:
    """Return True: the C++ library uses the C++11 ABI."""
    return True


def get_file_path(*path_components: str) -> str:
    """Return a path in the folder of the package."""
    return os.path.join(os.path.dirname(candelabra.__file__), *path_components)


def get_device_module(device: Any = None) -> Any:
    """Return the module of a device's type, such as ``torch.cpu``; by default that of the current
    accelerator, or of the CPU.

    Raises
    ------
    RuntimeError
        If `device` is no device, or its type has no module.
    """
    if device is None:
        current = candelabra.accelerator.current_accelerator()
        kind = "cpu" if current is None else current.type
    elif isinstance(device, str | candelabra.device):
        kind = candelabra.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    try:
        return importlib.import_module(f"torch.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None


def init_num_threads() -> None:
    """Do nothing: the number of threads is set when the backend is loaded."""


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Turn the search for anomalies in backward passes on or off."""
    candelabra.autograd.set_detect_anomaly(enabled, check_nan)


def thread_safe_generator() -> None:
    """Return None, which stands for the default generator: workers of a loader are processes."""


# ---- autocast, by its old names


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on for the CPU."""
    return candelabra.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turn autocast for the CPU on or off."""
    candelabra.set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Any:
    """Return the dtype of autocast on the CPU."""
    return candelabra.get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Set the dtype of autocast on the CPU."""
    candelabra.set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """Return the dtype of autocast on CUDA devices."""
    return candelabra.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Set the dtype of autocast on CUDA devices."""
    candelabra.set_autocast_dtype("cuda", dtype)


def autocast_increment_nesting() -> int:
    """Enter one more level of autocast, and return how many there are."""
    _autocast._thread.nesting += 1
    return _autocast._thread.nesting


def autocast_decrement_nesting() -> int:
    """Leave a level of autocast, and return how many there are."""
    _autocast._thread.nesting -= 1
    return _autocast._thread.nesting
