"""Compile sources into operators: ``load``, ``load_inline`` and ``load_library``."""

from __future__ import annotations

import ctypes
import json
import os
import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from candelabra.catalogue.declaration import DATA_DEPENDENT, NUMBERS
from candelabra.catalogue.schemas import parse
from candelabra.library import CustomOpDef
from candelabra.library.definitions import DEFINITIONS, forget

from . import formulas, glue, shape_rules
from .building import FORMULAS, Recipe, Source, build, check_source_name, is_cpp
from .glue import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Shape = str | Callable[..., Any]

_CPP_PRELUDE = """#include <algorithm>
#include <cmath>
#include <numeric>
#include "candelabra/extension.hpp"
using namespace candelabra::extension;
"""
_C_PRELUDE = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "candelabra/backend.h"
"""
#: Loaded modules and their definitions, by the path of the library.
_loaded: dict[str, tuple[types.ModuleType, list[CustomOpDef]]] = {}


def _texts(sources: str | Iterable[str] | None) -> list[str]:
    return [] if sources is None else [sources] if isinstance(sources, str) else list(sources)


def _function(schema: str, shape: Any, dtypes: Iterable[Any], doc: str, formula: str | None = None) -> Function:
    """Parse one entry of ``functions``."""
    text = " ".join(schema.split())
    match = re.match(r"([A-Za-z_]\w*)\s*\(", text)
    if match is None or "->" not in text:
        raise ValueError(
            f'expected a schema such as "smooth(Tensor x, float strength=1.0) -> Tensor", but got {schema!r}: the core checks the arguments '
            "by it, and there is no code around the function"
        )
    names = tuple(str(one).removeprefix("candelabra.") for one in dtypes)
    # The core validates the schema when the operator is defined. This only splits it.
    return Function(match[1], text, parse(text), shape if isinstance(shape, str) else None, names, doc, formula)


def _functions(
    functions: Any, shapes: Mapping[str, Shape], dtypes: Mapping[str, Sequence[Any]]
) -> tuple[list[Function], dict[str, Callable[..., Any]]]:
    """Parse ``functions`` and return the operators and the shape functions in Python.

    The schemas may come with a docstring or a dict of options.
    """
    if isinstance(functions, str):
        functions = [functions]
    entries = (
        list(functions.items()) if isinstance(functions, Mapping) else [(schema, "") for schema in functions or ()]
    )
    made: list[Function] = []
    described: dict[str, Callable[..., Any]] = {}
    for schema, options in entries:
        given = {"doc": options} if isinstance(options, str) else dict(options)
        unknown = set(given) - {"doc", "shape", "dtypes"}
        if unknown:
            raise ValueError(
                f"functions: {sorted(unknown)[0]!r} is no option of {schema!r}; there are doc, shape and dtypes"
            )
        name = schema.partition("(")[0].strip()
        shape = given.get("shape", shapes.get(name))
        made.append(_function(schema, shape, given.get("dtypes", dtypes.get(name, ())), given.get("doc", "")))
        if callable(shape):
            described[made[-1].name] = shape
        elif shape is not None and not isinstance(shape, str):
            raise TypeError(
                f"{name}: expected the shape of its results as a text or a function, but got {type(shape).__name__}"
            )
    _check_names(made, [*shapes, *dtypes])
    return made, described


def _check_names(functions: list[Function], mentioned: Iterable[str]) -> None:
    names = [function.name for function in functions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"functions: {twice} is there twice")
    unknown = next((name for name in mentioned if name not in names), None)
    if unknown is not None:
        raise ValueError(f"shapes or dtypes names {unknown!r}, but functions has {', '.join(names) or 'nothing'} only")


def _formula_functions(elementwise: Mapping[str, str] | None, dtypes: Mapping[str, Sequence[Any]]) -> list[Function]:
    made = []
    for schema, formula in (elementwise or {}).items():
        text = schema if "->" in schema else f"{schema} -> Tensor"
        name = schema.partition("(")[0].strip()
        one = _function(text, None, dtypes.get(name, formulas.FLOATING), f"Compute ``{formula}``.", formula)
        formulas.check(one)
        made.append(one)
    return made


# ---- sources


def _refuse_torch(text: str, where: str) -> None:
    found = re.search(r'#\s*include\s*[<"](torch/[^>"]*|ATen/[^>"]*|c10/[^>"]*|pybind11/[^>"]*)[>"]', text)
    if found is not None:
        raise RuntimeError(
            f'{where} includes {found[1]}, which is not here: "candelabra/extension.hpp" is included instead (by load_inline without being '
            "told), and functions= has the schemas of what is to be an operator; see docs/extensions.md"
        )


def with_glue(sources: Sequence[Source], functions: Sequence[Function], namespace: str) -> tuple[Source, ...]:
    """Append the glue code to the sources that contain the functions.

    Raises
    ------
    ValueError
        If no source contains a function.
    """
    added: dict[int, list[str]] = {number: [] for number in range(len(sources))}
    for function in functions:
        if function.formula is not None:
            continue
        at = next((number for number, source in enumerate(sources) if glue.mentions(function.name, source.text)), None)
        if at is None:
            raise ValueError(f"{function.schema}: no source has a function {function.name}")
        source = sources[at]
        added[at].append(glue.cpp_glue(function) if is_cpp(source.name) else glue.c_glue(function, source.text))
    made = []
    for number, source in enumerate(sources):
        header = "extension.hpp" if is_cpp(source.name) else "backend.h"
        text = source.text
        if added[number]:
            text += f'\n#include "candelabra/{header}"\n' + "".join(added[number])
        made.append(source._replace(text=text))
    with_formula = [function for function in functions if function.formula is not None]
    if with_formula:
        made.append(Source(FORMULAS, formulas.formula_source(with_formula)))
    if not made:
        raise ValueError(f"{namespace}: there is nothing to be compiled")
    made[0] = made[0]._replace(text=made[0].text + "\n" + glue.manifest_glue(namespace, functions))
    return tuple(made)


def read_sources(paths: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """Read source files, with line directives so that compiler messages name the original file."""
    made = []
    for path in paths:
        full = os.path.abspath(os.fspath(path))
        check_source_name(full)
        text = Path(full).read_text()
        _refuse_torch(text, full)
        quoted = full.replace("\\", "\\\\").replace('"', '\\"')
        made.append(Source(os.path.basename(full), f'#line 1 "{quoted}"\n{text}'))
    return made


def _recipe(
    name: str, sources: tuple[Source, ...], cflags: Any, ldflags: Any, folders: Iterable[Any], own: Iterable[str] = ()
) -> Recipe:
    for what, given in (("extra_cflags", cflags), ("extra_ldflags", ldflags)):
        if isinstance(given, str):
            raise TypeError(f"{what} is a list of flags, not one text: {given.split()}")
    quoted = [flag for folder in dict.fromkeys(own) for flag in ("-iquote", folder)]
    return Recipe(
        name,
        sources,
        (*quoted, *(cflags or ())),
        tuple(ldflags or ()),
        tuple(os.path.abspath(os.fspath(one)) for one in folders),
    )


# ---- definition of the built operators


def _read_manifest(path: str) -> dict[str, Any]:
    try:
        library = ctypes.CDLL(path)
        function = getattr(library, glue.MANIFEST)
    except OSError as error:
        raise OSError(f"{path} could not be opened: {error}") from None
    except AttributeError:
        raise RuntimeError(
            f"{path} says nothing of operators: candelabra.utils.cpp_extension did not build it, or no functions= were given"
        ) from None
    function.restype = ctypes.c_char_p
    said: dict[str, Any] = json.loads(function().decode())
    if said.get("format") != 1:
        raise RuntimeError(f"{path} was built for another version of candelabra-utils; build it again")
    return said


def _define(path: str, described: Mapping[str, Callable[..., Any]]) -> types.ModuleType:
    known = _loaded.get(path)
    if known is not None and all(DEFINITIONS.get(one._qualname) is one for one in known[1]):
        module, definitions = known
        for one in definitions:
            if one._name in described:
                one.register_fake(shape_rules.from_function(one._qualname, one._parsed, described[one._name]))
        return module
    said = _read_manifest(path)
    namespace = said["namespace"]
    definitions = [_define_one(path, namespace, one, described) for one in said["operators"]]
    module = types.ModuleType(namespace, f"The operators of {path}.")
    module.__file__ = path
    for one in definitions:
        setattr(module, one._name, one._opoverload)
    _loaded[path] = module, definitions
    return module


def _define_one(
    path: str, namespace: str, said: dict[str, Any], described: Mapping[str, Callable[..., Any]]
) -> CustomOpDef:
    schema = said["schema"]
    name = schema.partition("(")[0].strip()
    qualname = f"{namespace}::{name}"
    parsed = parse(schema)
    rule = None
    if said["formula"] is None and parsed.results:
        text = said["shape"] or (None if name in described else shape_rules.default_rule(parsed))
        if text is not None:
            rule = shape_rules.ShapeRule(qualname, parsed, text)
        elif name not in described:
            raise ValueError(
                f"{qualname}: nothing says which shape the result has: there is no tensor among the arguments that it could be like. shapes= "
                "takes a rule or a function"
            )
    forget(qualname)
    if said["formula"] is not None:
        one = Function(name, schema, parsed, None, tuple(said["dtypes"]), "", said["formula"])
        made = CustomOpDef(
            qualname,
            schema[len(name) :],
            rule="formula" if formulas.keeps_integers(one) else "formula_float",
            tags=NUMBERS,
        )
    else:
        data = rule is not None and rule.depends_on_data
        made = CustomOpDef(qualname, schema[len(name) :], tags=DATA_DEPENDENT if data else 0)
        if name in described:
            made.register_fake(shape_rules.from_function(qualname, parsed, described[name]))
        elif rule is not None:
            made.register_fake(rule)
    made._opoverload.__doc__ = said["doc"]
    made.register_compiled_kernel("cpu", path, glue.symbol_of(name))
    return made


def load_library(
    path: str | os.PathLike[str], shapes: Mapping[str, Callable[..., Any]] | None = None
) -> types.ModuleType:
    """Define the operators of a library that `load`, `load_inline` or a ``setup.py`` built.

    Parameters
    ----------
    path
        Path of the library. It contains machine code: load only trusted files.
    shapes
        Shape functions by operator name, for operators without a rule in the library.

    Returns
    -------
    module
        Module with the operators, which are also in ``candelabra.ops``.

    Raises
    ------
    OSError
        If the library cannot be opened.
    RuntimeError
        If the library does not describe any operators.
    """
    return _define(os.path.abspath(os.fspath(path)), dict(shapes or {}))


def _finish(path: Path, described: Mapping[str, Callable[..., Any]], is_python_module: bool) -> Any:
    module = _define(str(path), described)
    return module if is_python_module else str(path)


def _refuse_cuda(name: str, with_cuda: bool | None, **given: Any) -> None:
    wanted = next((what for what, value in given.items() if value), None)
    if with_cuda or wanted is not None:
        raise NotImplementedError(
            f"{name}: {wanted or 'with_cuda'}: this version of candelabra-utils compiles C and C++ only, for the CPU"
        )


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(
            f"expected a name for the extension, which is the namespace of its operators, but got {name!r}"
        )


def load(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    *,
    functions: Any = None,
    shapes: Mapping[str, Shape] | None = None,
    dtypes: Mapping[str, Sequence[Any]] | None = None,
) -> Any:
    """Compile C and C++ files into operators.

    Results are cached. The key consists of the sources, the headers they include, the flags and the
    compiler version.

    Parameters
    ----------
    name
        Name of the extension and namespace of its operators, ``candelabra.ops.NAME``.
    sources
        Files with the suffix ``.c`` or a suffix of C++, such as ``.cpp``.
    extra_cflags, extra_ldflags
        Extra flags for the compiler and the linker, placed after ``-O3``.
    extra_cuda_cflags, with_cuda
        Not supported; raises NotImplementedError if set.
    extra_include_paths
        Additional include directories.
    build_directory
        Directory to build in instead of the cache.
    verbose
        Whether to print commands and warnings.
    is_python_module
        If False, return the path of the library instead of the operators. The library is not a
        Python module in either case.
    is_standalone
        Not supported, because programs are not built.
    keep_intermediates
        Ignored; accepted for compatibility with PyTorch. Object files are not kept.
    functions
        Schemas of the operators, ``["smooth(Tensor x, float strength=1.0) -> Tensor"]``. Each one
        names its C or C++ function. A dict maps schemas to docstrings, or to dicts with the keys
        ``doc``, ``shape`` and ``dtypes``.
    shapes
        Shapes of results by operator. A value is a rule such as ``"(n, m), (m, k) -> (n, k)"``,
        ``"like x"`` or ``"data: int64"``, or a function of the arguments that returns sizes or
        tensors. By default, results are like the first tensor.
    dtypes
        Dtypes for which a function template is instantiated, by operator. The dtype of the first
        tensor selects the instance.

    Returns
    -------
    module or str
        The operators as attributes of a module, or the path.

    Raises
    ------
    CompilationError
        If the compiler fails; the message has its output.
    ValueError
        If schemas, rules and sources are inconsistent.
    """
    _check_name(name)
    _refuse_cuda(name, with_cuda, extra_cuda_cflags=extra_cuda_cflags)
    if is_standalone:
        raise NotImplementedError(f"load({name!r}, is_standalone=True): programs are not built, only operators")
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if not functions:
        raise ValueError(
            f"load({name!r}): functions= has the schemas of the functions that are to be operators; there is no code in the sources that "
            "would register them"
        )
    made, described = _functions(functions, shapes or {}, dtypes or {})
    own = [os.path.dirname(os.path.abspath(os.fspath(path))) for path in paths]
    recipe = _recipe(
        name, with_glue(read_sources(paths), made, name), extra_cflags, extra_ldflags, extra_include_paths or (), own
    )
    return _finish(build(recipe, build_directory, verbose), described, is_python_module)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str] | None = None,
    cuda_sources: str | Sequence[str] | None = None,
    functions: Any = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    *,
    c_sources: str | Sequence[str] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    dtypes: Mapping[str, Sequence[Any]] | None = None,
    elementwise: Mapping[str, str] | None = None,
) -> Any:
    """Compile C and C++ source strings, or elementwise formulas, into operators.

    Parameters
    ----------
    name
        Name of the extension and namespace of its operators, ``candelabra.ops.NAME``.
    cpp_sources, c_sources
        Source strings in C++ and in C. C++ sources include ``candelabra/extension.hpp`` with its
        names in scope, and C sources include ``candelabra/backend.h``. Common standard headers are
        included too.
    cuda_sources, extra_cuda_cflags, with_cuda
        Not supported; raises NotImplementedError if set.
    functions, shapes, dtypes
        As in `load`.
    extra_cflags, extra_ldflags, extra_include_paths, build_directory, verbose, is_python_module
        As in `load`.
    with_pytorch_error_handling, keep_intermediates, use_pch
        Ignored; accepted for compatibility with PyTorch. Exceptions always become Python
        exceptions.
    no_implicit_headers
        If True, no header is included automatically.
    elementwise
        Formulas by schema: ``{"damped(Tensor x, Tensor y, float rate=1.0)": "x * exp(-rate *
        abs(y))"}``, in Python syntax. Arguments broadcast, are promoted as usual, and may have any
        strides. Integers become the default dtype unless `dtypes` lists integer dtypes.

    Returns
    -------
    module or str
        The operators as attributes of a module, or the path.

    Raises
    ------
    CompilationError
        If the compiler fails; the message has its output.
    ValueError
        If schemas, rules and sources are inconsistent.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.cpp_extension import load_inline
    >>> waves = load_inline("docs_waves", elementwise={"triangle(Tensor x)": "2 / pi * asin(sin(x))"})
    >>> waves.triangle(candelabra.tensor([0.0, 0.7853981852531433]))
    tensor([0.0000, 0.5000])
    """
    _check_name(name)
    _refuse_cuda(name, with_cuda, cuda_sources=cuda_sources, extra_cuda_cflags=extra_cuda_cflags)
    cpp, c = _texts(cpp_sources), _texts(c_sources)
    for text in (*cpp, *c):
        _refuse_torch(text, f"load_inline({name!r}): the source")
    of_formulas = {schema.partition("(")[0].strip() for schema in elementwise or {}}
    own_dtypes = {key: value for key, value in (dtypes or {}).items() if key not in of_formulas}
    made, described = _functions(functions, shapes or {}, own_dtypes)
    made += _formula_functions(elementwise, dtypes or {})
    _check_names(made, ())
    if not made:
        _refuse_nothing(name)
    sources = []
    for number, (text, prelude, ending) in enumerate(
        [*((t, _CPP_PRELUDE, "cpp") for t in cpp), *((t, _C_PRELUDE, "c") for t in c)]
    ):
        label = f"main{number or ''}.{ending}"
        head = "" if no_implicit_headers else prelude
        sources.append(Source(label, f'{head}#line 1 "{name}/{label}"\n{text}'))
    recipe = _recipe(name, with_glue(sources, made, name), extra_cflags, extra_ldflags, extra_include_paths or ())
    return _finish(build(recipe, build_directory, verbose), described, is_python_module)


def _refuse_nothing(name: str) -> NoReturn:
    raise ValueError(
        f"load_inline({name!r}): functions= has the schemas of the functions that are to be operators, elementwise= formulas; neither is given"
    )
