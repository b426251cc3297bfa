"""Names of ``torch`` itself: the version, ``compile``, and others."""

from __future__ import annotations

import enum
import importlib
import os
from typing import Any

import candelabra
from candelabra import UntypedStorage as StorageBase
from candelabra import amp
from candelabra.accelerator import Event, Stream
from candelabra.amp import autocasting as _autocast

from .archives import PyTorchFileReader, PyTorchFileWriter
from .bindings import has_lapack, has_mkl, has_openmp, has_spectral
from .compilers.compiler import compile
from .compilers.jit import ScriptFunction, ScriptModule, fork, wait
from .files import load, save
from .futures import Future
from .internals import absent_dtypes, checks, checks_of_tensors
from .internals.absent_dtypes import *  # noqa: F403
from .internals.checks import *  # noqa: F403
from .internals.checks_of_tensors import *  # noqa: F403
from .internals.jit_annotations import TensorType
from .operators import foreach
from .operators.dispatch_keys import DispatchKey, DispatchKeySet
from .operators.foreach import *  # noqa: F403
from .random import thread_safe_generator
from .symbols import SymBool, SymFloat, SymInt
from .version import __version__

#: Layouts that no tensor has: programs compare with them, and functions refuse them.
_LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")

__all__ = [
    "DispatchKey", "DispatchKeySet", "Event", "Future", "StorageBase", "TensorType", "PyTorchFileReader", "PyTorchFileWriter", "ScriptFunction",
    "ScriptModule", "Stream", "SymBool", "SymFloat", "SymInt", "Tag", "autocast_decrement_nesting",
    "autocast_increment_nesting", "compile", "compiled_with_cxx11_abi", "convolution", "fork",
    "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "get_device_module", "get_file_path", "has_lapack", "has_mkl",
    "has_openmp", "has_spectral", "init_num_threads", "is_autocast_cpu_enabled", "load", "save",
    "set_anomaly_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_gpu_dtype",
    "thread_safe_generator", "wait", "__version__", *_LAYOUTS, *absent_dtypes.__all__, *checks.__all__, *checks_of_tensors.__all__, *foreach.__all__,
]  # fmt: skip

globals().update({name: candelabra.layout(name) for name in _LAYOUTS})


def compiled_with_cxx11_abi() -> bool:
    """Return True: the C++ library uses the C++11 ABI."""
    return True


class Tag(enum.Enum):
    """What is known of an operator; for the ``tags=`` of its definition."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace_view = 6
    maybe_aliasing_or_mutating = 7
    needs_contiguous_strides = 8
    needs_exact_strides = 9
    needs_fixed_stride_order = 10
    nondeterministic_bitwise = 11
    nondeterministic_seeded = 12
    pointwise = 13
    pt2_compliant_tag = 14
    reduction = 15
    view_copy = 16


def convolution(
    input: candelabra.Tensor,
    weight: candelabra.Tensor,
    bias: candelabra.Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> candelabra.Tensor:
    """Convolve in one, two or three dimensions, as ``conv1d`` or ``conv_transpose1d`` and their
    relatives do.

    Raises
    ------
    RuntimeError
        If the weight has another number of dimensions.
    """
    dims = weight.ndim - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(f"convolution(): expected a weight of 3 to 5 dimensions, but got {weight.ndim}")
    if transposed:
        function = getattr(candelabra, f"conv_transpose{dims}d")
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(candelabra, f"conv{dims}d")(input, weight, bias, stride, padding, dilation, groups)


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


# ---- autocast, by its old names


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on for the CPU."""
    return amp.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turn autocast for the CPU on or off."""
    amp.set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Any:
    """Return the dtype of autocast on the CPU."""
    return amp.get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Set the dtype of autocast on the CPU."""
    amp.set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """Return the dtype of autocast on CUDA devices."""
    return amp.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Set the dtype of autocast on CUDA devices."""
    amp.set_autocast_dtype("cuda", dtype)


def autocast_increment_nesting() -> int:
    """Enter one more level of autocast, and return how many there are."""
    _autocast._thread.nesting += 1
    return _autocast._thread.nesting


def autocast_decrement_nesting() -> int:
    """Leave a level of autocast, and return how many there are."""
    _autocast._thread.nesting -= 1
    return _autocast._thread.nesting
