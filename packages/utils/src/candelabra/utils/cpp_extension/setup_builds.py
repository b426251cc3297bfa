"""Support for ``setup.py``: libraries of operators, and backends in C and C++.

    from candelabra.utils.cpp_extension import BuildExtension, CppExtension

    setup(
        name="waves",
        packages=["waves"],
        ext_modules=[CppExtension("waves.kernels", ["kernels.cpp"], functions=["wave(Tensor x) ->
        Tensor"])], cmdclass={"build_ext": BuildExtension},
    )

and in ``waves/__init__.py``: ``load_library(Path(__file__).parent / "kernels.so")``. The library
does not depend on the Python version. It works with any version of Candelabra whose ``backend.h``
has the same major interface version.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from .building import Recipe, compile_and_link
from .loading import _functions, read_sources, with_glue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Library(Extension):
    """An extension that `BuildExtension` builds."""

    candelabra_functions: Any
    candelabra_shapes: Mapping[str, str]
    candelabra_dtypes: Mapping[str, Sequence[Any]]
    candelabra_namespace: str


def CppExtension(
    name: str,
    sources: Sequence[str],
    *args: Any,
    functions: Any = None,
    shapes: Mapping[str, str] | None = None,
    dtypes: Mapping[str, Sequence[Any]] | None = None,
    namespace: str | None = None,
    **kwargs: Any,
) -> Any:
    """Describe a library of C and C++ operators for ``setup()``.

    Parameters
    ----------
    name
        Module path of the library: ``"waves.kernels"`` becomes ``waves/kernels.so``.
    sources
        Files with the suffix ``.c`` or a suffix of C++, such as ``.cpp``.
    functions, dtypes
        As in `load`. Without `functions`, no glue code is added: the library is a backend that
        exports ``candelabra_backend``.
    shapes
        As in `load`, but only rules. Pass shape functions to `load_library`.
    namespace
        Namespace of the operators; by default the last part of `name`.
    args, kwargs
        Arguments of ``setuptools.Extension``: ``include_dirs``, ``define_macros``, ``libraries``,
        ``library_dirs``, ``extra_compile_args``, ``extra_link_args``, ``depends``.

    Returns
    -------
    setuptools.Extension
    """
    if any(callable(shape) for shape in (shapes or {}).values()):
        raise TypeError(
            f"CppExtension({name!r}): a function cannot be put into a library; load_library(path, shapes=...) takes it"
        )
    made = _Library(name, list(sources), *args, **kwargs)
    made.candelabra_functions, made.candelabra_shapes, made.candelabra_dtypes = functions, shapes or {}, dtypes or {}
    made.candelabra_namespace = namespace or name.rpartition(".")[2]
    return made


class BuildExtension(build_ext):
    """The ``build_ext`` command for `CppExtension`; other extensions are built as usual."""

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Return this class; the options of PyTorch are accepted and have no effect.

        They are ``use_ninja``, ``no_python_abi_suffix`` and ``max_jobs``.
        """
        unknown = set(options) - {"use_ninja", "no_python_abi_suffix", "max_jobs"}
        if unknown:
            raise TypeError(f"BuildExtension.with_options(): there is no option {sorted(unknown)[0]!r}")
        return cls

    def get_ext_filename(self, fullname: str) -> str:
        """Return the file name of a library, without a Python ABI tag because it needs none."""
        found = self.ext_map.get(fullname) if getattr(self, "ext_map", None) else None
        if isinstance(found, _Library) or any(
            isinstance(one, _Library) and one.name.rpartition(".")[2] == fullname for one in self.extensions or ()
        ):
            return os.path.join(*fullname.split(".")) + ".so"
        return str(super().get_ext_filename(fullname))

    def build_extension(self, ext: Any) -> None:
        """Compile and link one library."""
        if not isinstance(ext, _Library):
            super().build_extension(ext)
            return
        sources: Any = tuple(read_sources(ext.sources))
        if ext.candelabra_functions:
            functions, _ = _functions(ext.candelabra_functions, ext.candelabra_shapes, ext.candelabra_dtypes)
            sources = with_glue(sources, functions, ext.candelabra_namespace)
        folders = dict.fromkeys(os.path.dirname(os.path.abspath(source)) for source in ext.sources)
        macros = [f"-D{macro}" if value is None else f"-D{macro}={value}" for macro, value in ext.define_macros]
        quoted = [flag for folder in folders for flag in ("-iquote", folder)]
        libraries = [*(f"-L{folder}" for folder in ext.library_dirs), *(f"-l{library}" for library in ext.libraries)]
        recipe = Recipe(
            ext.name.rpartition(".")[2],
            sources,
            (*quoted, *macros, *(ext.extra_compile_args or ())),
            (*libraries, *(ext.extra_link_args or ())),
            tuple(os.path.abspath(folder) for folder in ext.include_dirs),
        )
        scratch = Path(self.build_temp, ext.name)
        scratch.mkdir(parents=True, exist_ok=True)
        made = scratch / "library.so"
        compile_and_link(recipe, scratch, made, verbose=bool(self.verbose))
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, target)
        target.chmod(0o755)
