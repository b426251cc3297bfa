"""Operators in C and C++: compiled by the system's compiler, behind the interface that backends
have (``candelabra/backend.h``).

``load_inline`` compiles source text, ``load`` files, ``CppExtension`` and ``BuildExtension`` what a
``setup.py`` builds. docs/extensions.md explains them from end to end.
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
    # setuptools is needed where a setup.py runs, and nowhere else.
    if name in ("BuildExtension", "CppExtension"):
        from . import setup_builds

        return getattr(setup_builds, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: Where CUDA's compiler is: it is not used.
CUDA_HOME: str | None = None


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: only C and C++ are compiled.

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
    """Refuse: only C and C++ are compiled.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        f"SyclExtension({name!r}): this version of candelabra-utils compiles C and C++ only, for the CPU; CppExtension does"
    )
