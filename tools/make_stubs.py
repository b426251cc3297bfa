"""Write tensor-core's type stubs from the catalogue and the composites: ``python
tools/make_stubs.py``. With ``--check``, only compare.

``_C.pyi`` describes the extension module: its types, with all methods of Tensor. ``__init__.pyi``
describes the package: its functions.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from stub_text import CORE, FUNCTIONS, TENSOR

import candelabra
from candelabra import composite
from candelabra.assembly import (
    DTYPE_NAMES,
    FUNCTIONS_IN_PLACE,
    LAZY_FUNCTIONS,
    LAZY_MODULES,
    METHODS_AS_FUNCTIONS,
    NATIVE_FUNCTIONS,
    NN_FUNCTIONS,
    STAND_INS,
    SUBPACKAGES,
    TAPE_FUNCTIONS,
)
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import FUNCTION_ONLY, HIDDEN, METHOD_ONLY, NUMBERS, RANDOM
from candelabra.composite.creation.legacy_types import TENSOR_TYPES

PACKAGE = Path(__file__).parent.parent / "packages" / "tensor-core" / "python" / "candelabra"
HEADER = '# ruff: noqa\n# fmt: off\n"""{what} Made by tools/make_stubs.py; not edited by hand."""\n\n'
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "complex32",
]

# The names of types in the stubs. Methods such as Tensor.float and functions such as
# candelabra.bool shadow Python's own.
TYPES = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "builtins.int", "float": "builtins.float", "bool": "builtins.bool",
    "str": "builtins.str", "dtype": "Dtype", "device": "Device", "memory_format": "MemoryFormat", "Generator": "Generator",
    "int[]": "Ints", "bool[]": "Sequence[builtins.bool]", "float[]": "Sequence[builtins.float]", "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
}  # fmt: skip
ANNOTATION = {
    **{name: f"builtins.{name}" for name in ("int", "bool", "float", "str", "list", "dict", "tuple", "type", "set", "complex")},
    "dtype": "Dtype", "memory_format": "MemoryFormat",
}  # fmt: skip

UNARY_SLOTS = ("neg", "pos", "abs", "invert")
BINARY_SLOTS = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
# These methods override methods of object with another signature.
OVERRIDES = {"__reduce_ex__", "__format__"}
# candelabra.autograd replaces these.
REPLACED = {"backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad"}


def slots() -> list[str]:
    """Return the number slots of Tensor."""
    lines = [f"    def __{name}__(self) -> Tensor: ..." for name in UNARY_SLOTS]
    for name in BINARY_SLOTS:
        lines += [
            f"    def __{kind}{name}__(self, other: Any) -> Tensor: ..."
            for kind in ("", "r", "i")
            if kind + name != "imatmul"
        ]
    for name in COMPARISONS:
        ignore = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        lines.append(f"    def __{name}__(self, other: Any) -> Tensor: ...{ignore}")
    return lines


def schema_parameters(operator: Any, method: bool) -> str:
    """Return an operator's parameters in stub syntax."""
    text = operator.schema
    inside = text[text.index("(") + 1 : text.index(") ->")]
    # Split at commas between parameters, not at those in defaults such as (1, 2).
    parts = [part.strip() for part in re.split(r",\s*(?![^()]*\))", inside) if part.strip()]
    made, keyword_only = [], False
    positional = [p for p in parts[: parts.index("*")] if p] if "*" in parts else parts
    if len(positional) == 2 and re.match(r"int\[\] ", positional[1]):
        return "self, *arguments: Any, **keywords: Any" if method else "input: Tensor, *arguments: Any, **keywords: Any"
    for position, part in enumerate(parts):
        if part == "*":
            keyword_only = True
            made.append("*")
            continue
        declaration, _, default = part.partition("=")
        kind, name = declaration.rsplit(" ", 1)
        kind = re.sub(r"\([a-z]!?\)", "", kind)
        kind = re.sub(r"\[\d+\]", "[]", kind)
        optional = kind.endswith("?")
        annotation = TYPES[kind.removesuffix("?")]
        if kind.startswith("Tensor") and "[" not in kind and operator.tags & NUMBERS and not (method and position == 0):
            annotation = "Tensor | Number"
        if optional and annotation != "Device":
            annotation += " | None"
        if position == 0 and method:
            made.append("self")
            continue
        if name == "self":
            name = "input"
        if name == "from":
            return "self, *arguments: Any, **keywords: Any" if method else "*arguments: Any, **keywords: Any"
        made.append(f"{name}: {annotation}" + (" = ..." if default else ""))
    if not keyword_only:
        made.append("*")
    made.append("out: Any = ...")
    if operator.tags & RANDOM:
        made.append("generator: Generator | None = ...")
    return ", ".join(made)


def operator_line(name: str, operator: Any, method: bool) -> str:
    """Return the stub of an operator."""
    returns = "Tensor" if operator.result_count == 1 else "Any" if operator.result_count else "None"
    has_other_signatures = operator.fallback is not None and not getattr(operator.fallback, "is_deprecated", False)
    if has_other_signatures or name in ("var", "std"):
        first = "self" if method else "input: Tensor"
        return f"def {name}({first}, *arguments: Any, **keywords: Any) -> Any: ..."
    return f"def {name}({schema_parameters(operator, method)}) -> {returns}: ..."


def annotation_text(annotation: Any) -> str:
    """Return an annotation with the stubs' type names."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    return re.sub(r"\b(\w+)\b(?![\w.])", lambda m: ANNOTATION.get(m[1], m[1]), str(annotation))


def function_line(name: str, function: Any, method: bool) -> str:
    """Return the stub of a Python function."""
    made, star = [], False
    for position, p in enumerate(inspect.signature(function).parameters.values()):
        if position == 0 and method:
            made.append("self")
            continue
        if p.kind is p.VAR_POSITIONAL:
            made.append(f"*{p.name}: {annotation_text(p.annotation)}")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            made.append(f"**{p.name}: {annotation_text(p.annotation)}")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                made.append("*")
                star = True
            made.append(f"{p.name}: {annotation_text(p.annotation)}" + (" = ..." if p.default is not p.empty else ""))
    returns = annotation_text(inspect.signature(function).return_annotation)
    ignore = "  # type: ignore[override]" if name in OVERRIDES else ""
    return f"def {name}({', '.join(made)}) -> {returns}: ...{ignore}"


def alias_lines(known: dict[str, str]) -> None:
    """Add the aliases of operators."""
    for alias, name in composite.ALIASES.items():
        for suffix in ("", "_"):
            if name + suffix in known:
                known[alias + suffix] = known[name + suffix].replace(
                    f"def {name + suffix}(", f"def {alias + suffix}(", 1
                )


def core_stub() -> str:
    """Return ``_C.pyi``."""
    methods: dict[str, str] = {}
    for name, operator in OPERATORS.items():
        if operator.tags & HIDDEN:
            continue
        if not operator.tags & FUNCTION_ONLY:
            methods[name] = operator_line(name, operator, True)
        if operator.inplace is not None:
            methods[operator.inplace.name] = operator_line(operator.inplace.name, operator.inplace, True)
    for name, function in composite.METHODS.items():
        methods[name] = f"{name}: Callable[..., Any]" if name in REPLACED else function_line(name, function, True)
    alias_lines(methods)
    already = set(re.findall(r"    def (\w+)\(", TENSOR))
    lines = [f"    {text}" for name, text in sorted(methods.items()) if name not in already]
    properties = []
    for name, attribute in composite.PROPERTIES.items():
        if attribute.fset is None:
            returns = annotation_text(inspect.signature(attribute.fget).return_annotation)
            properties += ["    @property", f"    def {name}(self) -> {returns}: ..."]
    tensor = "class Tensor:\n" + TENSOR + "\n".join([*slots(), *properties, *lines]) + "\n"
    values = "".join(f"{name}: dtype\n" for name in DTYPES)
    values += "contiguous_format: memory_format\nchannels_last: memory_format\nchannels_last_3d: memory_format\npreserve_format: memory_format\n"
    return (
        HEADER.format(what="The extension module.")
        + CORE
        + "_Dtype: TypeAlias = dtype\n"
        + values
        + "\n"
        + tensor
        + "\n"
        + FUNCTIONS
    )


def package_functions() -> dict[str, str]:
    """Return the lines of the package's functions by name."""
    functions: dict[str, str] = {}
    for name, operator in OPERATORS.items():
        if operator.tags & (HIDDEN | METHOD_ONLY):
            continue
        functions[name] = operator_line(name, operator, False)
        if operator.inplace is not None and (len(operator.parameters) == 1 or name in FUNCTIONS_IN_PLACE):
            functions[operator.inplace.name] = operator_line(operator.inplace.name, operator.inplace, False)
    for name, function in composite.FUNCTIONS.items():
        functions[name] = f"{name}: TensorType" if name in TENSOR_TYPES else function_line(name, function, False)
    for name in METHODS_AS_FUNCTIONS:
        functions[name] = f"def {name}(input: Tensor, *arguments: Any, **keywords: Any) -> Any: ..."
    alias_lines(functions)
    return functions


def package_stub() -> str:
    """Return ``__init__.pyi``."""
    functions = package_functions()
    types = [
        "AcceleratorError",
        "BackendError",
        "BackendVersionError",
        "Generator",
        "OutOfMemoryError",
        "Size",
        "Storage",
        "Tensor",
        "device",
        "dtype",
    ]
    types += [
        "memory_format",
        "contiguous_format",
        "channels_last",
        "channels_last_3d",
        "preserve_format",
        *(d for d in DTYPES if d != "bool"),
    ]
    modules = {
        "grad_mode": [
            "enable_grad",
            "inference_mode",
            "is_grad_enabled",
            "is_inference_mode_enabled",
            "no_grad",
            "set_grad_enabled",
        ],
        "defaults": candelabra.defaults.__all__,
        "layout": ["layout", "strided"],
        "numeric_info": ["finfo", "iinfo"],
        "printing": ["set_printoptions"],
        "settings": candelabra.settings.__all__,
        "version": ["__version__"],
    }
    text = HEADER.format(what="The package: functions, dtypes and modules.")
    text += "import builtins\nfrom collections.abc import Callable, Sequence\nfrom typing import Any\n\n"
    text += "from . import _C as _C\n"
    # A distribution that is not installed is Any: type checkers do not report imports in stubs.
    submodules = {
        "backends",
        "catalogue",
        "defaults",
        "linalg",
        "return_types",
        "settings",
        *LAZY_MODULES,
        *SUBPACKAGES,
    }
    for name in sorted(submodules):
        ignore = "  # type: ignore[attr-defined]" if name in SUBPACKAGES else ""
        text += f"from . import {STAND_INS.get(name, name)} as {name}{ignore}\n"
    modules |= {
        "compiler": ["compile"],
        **{
            module: [n for n, place in LAZY_FUNCTIONS.items() if place == module] for module in ("amp", "serialization")
        },
        "storage": ["TypedStorage"],
        "nn.functional": sorted(NN_FUNCTIONS - functions.keys()),
        "nn.functional.native": sorted(NATIVE_FUNCTIONS - functions.keys()),
        "autograd": sorted(TAPE_FUNCTIONS - functions.keys()),
    }
    text += "from ._C import Device, Dtype, Ints, MemoryFormat, Number\nfrom .composite.creation.legacy_types import TensorType\n"
    text += "".join(f"from ._C import {name} as {name}\n" for name in types)
    text += "".join(f"from .{module} import {name} as {name}\n" for module, names in modules.items() for name in names)
    text += "\nUntypedStorage = Storage\ninf: builtins.float\nnan: builtins.float\npi: builtins.float\ne: builtins.float\nnewaxis: None\n"
    text += "ops: Any\nvmap: Callable[..., Any]\ndefault_generator: Generator\n"
    text += "".join(f"{name}: Dtype\n" for name in DTYPE_NAMES)
    storages = [name for name, place in LAZY_FUNCTIONS.items() if place == "storage" and name != "TypedStorage"]
    text += "".join(f"{name}: type[TypedStorage]\n" for name in storages)
    return text + "\n" + "\n".join(line for _, line in sorted(functions.items())) + "\n"


def main() -> int:
    """Write the stubs, or report whether they are up to date."""
    stale = []
    for name, text in {"_C.pyi": core_stub(), "__init__.pyi": package_stub()}.items():
        path = PACKAGE / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    if stale:
        print(f"out of date: {', '.join(stale)}; run python tools/make_stubs.py")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
