# ruff: noqa: F401, F403, I001 (what is imported here is the package; __path__ comes first)
"""Candelabra: PyTorch's API, taken apart. This is the tensor core; backends, autograd, nn and optim
plug in.
"""

from __future__ import annotations

from .package_folders import folders_of

# The other distributions add candelabra.autograd, candelabra.nn, … from their own folders.
__path__ = folders_of(__name__, __path__)

from . import _C
from ._C import (
    AcceleratorError,
    BackendError,
    BackendVersionError,
    Generator,
    OutOfMemoryError,
    Size,
    Storage,
    Tensor,
    bfloat16,
    channels_last,
    channels_last_3d,
    complex32,
    complex64,
    complex128,
    contiguous_format,
    device,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    memory_format,
    preserve_format,
    uint8,
    uint16,
    uint32,
    uint64,
)
from . import assembly, backends, defaults, linalg, return_types
from .defaults import *
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .layout import layout, strided
from .numeric_info import finfo, iinfo
from .printing import set_printoptions
from .settings import *
from .version import __version__

UntypedStorage = Storage
#: The folder for CMake's find_package(candelabra CONFIG), with the headers that backends compile
#: against: for candelabra_DIR.
cmake_prefix_path = _C.__file__.rpartition("/")[0] + "/cmake"
inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None

#: Every operator by name, including those that are not functions of the package:
#: ``candelabra.ops.silu(x)``.
ops = assembly.ops
# Functions, methods, and dtypes whose names hide Python's own: from here on `bool` and `float` are
# dtypes in this module.
globals().update(assembly.assemble(Tensor))
__getattr__ = assembly.missing_attribute
__dir__ = assembly.directory(globals())
