"""Operators in C and C++, compiled with the system's compiler.

The operators use the C interface of backends, ``candelabra/backend.h``. ``load_inline`` compiles
source strings and ``load`` compiles files. ``CppExtension`` and ``BuildExtension`` are for a
``setup.py``. See docs/extensions.md for a guide.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .building import (
    CompilationError,
    check_compiler_ok_for_platform,
    get_compiler_abi_compatibility_and_version,
    get_cxx_compiler,
    get_default_build_root,
    include_paths,
    is_ninja_available,
    library_paths,
    verify_ninja_availability,
)
from .loading import load, load_inline, load_library

__all__ = [
    "BuildExtension", "CUDAExtension", "CUDA_HOME", "CompilationError", "CppExtension", "SyclExtension",
    "check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version", "get_cxx_compiler", "get_default_build_root",
    "include_paths", "is_ninja_available", "library_paths", "load", "load_inline", "load_library", "verify_ninja_availability",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Imported lazily, because setuptools is only needed in a setup.py.
    if name in ("BuildExtension", "CppExtension"):
        from . import setup_builds

        return getattr(setup_builds, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: Path of the CUDA toolkit in PyTorch; CUDA is not supported here.
CUDA_HOME: str | None = None


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError, because only C and C++ are supported.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        f"CUDAExtension({name!r}): this version of candelabra-utils compiles C and C++ only, for the CPU; CppExtension does. Kernels for "
        "a device of another kind come with a backend of their own (docs/backends.md)"
    )


def SyclExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError, because only C and C++ are supported.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        f"SyclExtension({name!r}): this version of candelabra-utils compiles C and C++ only, for the CPU; CppExtension does"
    )
