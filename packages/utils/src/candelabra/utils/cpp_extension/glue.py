"""Generated glue code between the core and kernels, based on schemas."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra.catalogue.schemas import Parsed

#: Name of the library function that returns the operators as JSON.
MANIFEST = "candelabra_operators"
_CPP_TYPES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "candelabra::extension::Float16",
    "bfloat16": "candelabra::extension::BFloat16", "float32": "float", "float64": "double", "complex64": "std::complex<float>",
    "complex128": "std::complex<double>",
}  # fmt: skip
#: C arguments for each parameter type of a schema.
_C_ARGUMENTS = {
    "Tensor": "({0}).as.tensor", "Tensor?": "({0}).kind == CB_NONE ? 0 : ({0}).as.tensor", "Tensor[]": "({0}).as.tensors, ({0}).count",
    "Tensor?[]": "({0}).as.tensors, ({0}).count", "int": "({0}).as.i", "SymInt": "({0}).as.i", "bool": "({0}).as.i != 0",
    "float": "({0}).as.f", "Scalar": "({0}).as.scalar", "str": "({0}).as.string", "int[]": "({0}).as.ints, ({0}).count",
    "SymInt[]": "({0}).as.ints, ({0}).count", "bool[]": "({0}).as.ints, ({0}).count", "float[]": "({0}).as.floats, ({0}).count",
    "dtype": "(int32_t)({0}).as.i", "ScalarType": "(int32_t)({0}).as.i",
}  # fmt: skip


class Function(NamedTuple):
    """One operator of an extension."""

    name: str
    #: Includes the name: ``"smooth(Tensor x) -> Tensor"``.
    schema: str
    parsed: Parsed
    #: Shape rule in the notation of shape_rules, or None.
    shape: str | None = None
    #: Dtypes for which a function template is instantiated.
    dtypes: tuple[str, ...] = ()
    doc: str = ""
    #: The formula, if the operator is defined by one.
    formula: str | None = None


def symbol_of(name: str) -> str:
    """Return the name of the function that the core calls for an operator."""
    return f"candelabra_kernel_{name}"


def _names(function: Function) -> str:
    quoted = ", ".join(f'"{parameter.name}"' for parameter in function.parsed.parameters)
    return f"static const char* const {function.name}_parameter_names[] = {{{quoted or '0'}}};"


def cpp_types(function: Function) -> list[str]:
    """Return the C++ types of the dtypes of a function.

    Raises
    ------
    ValueError
        If a dtype is unknown.
    """
    unknown = [name for name in function.dtypes if name not in _CPP_TYPES]
    if unknown:
        raise ValueError(f"{function.name}: there is no dtype {unknown[0]!r}; there are {', '.join(_CPP_TYPES)}")
    return [_CPP_TYPES[name] for name in function.dtypes]


def cpp_glue(function: Function) -> str:
    """Generate the entry point of a C++ function."""
    head = f'extern "C" CB_EXPORT int32_t {symbol_of(function.name)}(cb_call* call)'
    names = f"{function.name}_parameter_names"
    if not function.dtypes:
        return (
            f"{_names(function)}\n{head} {{ return candelabra::extension::call<&{function.name}>(call, {names}); }}\n"
        )
    types = ", ".join(cpp_types(function))
    return (
        f"{_names(function)}\n{head} {{\n"
        "  return candelabra::extension::guarded(call, [&] {\n"
        f"    return candelabra::extension::dispatch<{types}>(candelabra::extension::leading_dtype(call), [&]<typename T>() {{\n"
        f"      return candelabra::extension::invoke(call, {names}, &{function.name}<T>);\n    }});\n  }});\n}}\n"
    )


def c_glue(function: Function, text: str) -> str:
    """Generate the entry point of a C function."""
    head = f"CB_EXPORT int32_t {symbol_of(function.name)}(cb_call* call)"
    if function.dtypes:
        raise ValueError(
            f"{function.name}: dtypes= is for function templates in C++; a function in C looks at the dtype itself"
        )
    if takes_call(function.name, text):
        return f"{head} {{ return {function.name}(call); }}\n"
    given = [f"&call->outputs[{number}]" for number in range(len(function.parsed.results))]
    for number, parameter in enumerate(function.parsed.parameters):
        form = _C_ARGUMENTS.get(parameter.type)
        if form is None:
            raise ValueError(
                f"{function.name}: a function in C takes no {parameter.type} ({parameter.name}); write it as int32_t {function.name}(cb_call*), "
                "which sees all arguments, or in C++"
            )
        given.append(form.format(f"call->arguments[{number}]"))
    return f"{head} {{ return {function.name}({', '.join(given)}); }}\n"


def takes_call(name: str, text: str) -> bool:
    """Return whether a source defines `name` as a function of a `cb_call` pointer."""
    return re.search(rf"\b{name}\s*\(\s*(?:struct\s+)?cb_call\s*\*\s*\w*\s*\)", text) is not None


def mentions(name: str, text: str) -> bool:
    """Return whether a source calls, declares or defines a function."""
    return re.search(rf"\b{name}\s*\(", text) is not None


def manifest(namespace: str, functions: Sequence[Function]) -> dict[str, Any]:
    """Return the description of the operators that is embedded in a library."""
    return {
        "format": 1,
        "namespace": namespace,
        "operators": [
            {
                "schema": one.schema,
                "shape": one.shape,
                "doc": one.doc,
                "formula": one.formula,
                "dtypes": list(one.dtypes),
            }
            for one in functions
        ],
    }


def manifest_glue(namespace: str, functions: Sequence[Function]) -> str:
    """Generate the function that returns the manifest, in the common subset of C and C++."""
    # Split the string literal, because compilers limit its length.
    text = json.dumps(manifest(namespace, functions))
    parts = [text[start : start + 1000] for start in range(0, len(text), 1000)]
    quoted = "\n".join('"' + part.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"' for part in parts)
    return (
        '#include "candelabra/backend.h"\n#ifdef __cplusplus\nextern "C"\n#endif\n'
        f"CB_EXPORT const char* {MANIFEST}(void);\nconst char* {MANIFEST}(void) {{\n  return {quoted};\n}}\n"
    )
