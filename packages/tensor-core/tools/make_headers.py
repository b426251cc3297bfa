"""Write the headers by which shape rules and kernels read an operator's arguments by name.

``python make_headers.py FOLDER`` writes, from the rows of the operator catalogue:

- ``FOLDER/candelabra/arguments/FAMILY.hpp``: for each operator a struct with its arguments, for
  kernels in C++.
- ``FOLDER/candelabra/positions.hpp``: for each operator a namespace with the positions of its
  arguments, for shape rules.
- ``FOLDER/candelabra/positions.h``: the same positions as C99 enumerators, for kernels in C.
- ``FOLDER/candelabra/operator_rows.hpp``: the rows themselves, for hosts without Python.

Files whose text would stay the same are left alone, so that nothing is compiled again.
``--with-headers`` also copies the headers of ``include/``: FOLDER is then all that a backend is
compiled against.
"""

from __future__ import annotations

import argparse
import importlib
import re
import runpy
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent


def load_parser() -> Callable[[str], Any]:
    """Return the parser of schemas, from its file: the package needs the compiled core."""
    path = PACKAGE / "python" / "candelabra" / "catalogue" / "schemas.py"
    return runpy.run_path(str(path))["parse"]


parse = load_parser()
#: Words that are no identifiers in C++ or C; an argument of such a name gets an underscore.
RESERVED = frozenset(
    {"and", "bool", "default", "double", "float", "int", "long", "new", "not", "operator", "or", "this", "union", "xor"}
)
#: What a kernel sees of an argument: the type of the field, and the member of kernel::Call that
#: reads it. Types that are not listed (device, memory_format, object) are the core's own business
#: and have a position only.
READERS = {
    "Tensor": ("const cb_tensor*", "optional_tensor"),
    "Tensor?": ("const cb_tensor*", "optional_tensor"),
    "Tensor[]": ("std::span<const cb_tensor* const>", "tensors"),
    "Tensor?[]": ("std::span<const cb_tensor* const>", "tensors"),
    "Scalar": ("const cb_scalar*", "optional_scalar"),
    "Scalar?": ("const cb_scalar*", "optional_scalar"),
    "int": ("int64_t", "integer"),
    "int?": ("std::optional<int64_t>", "optional_integer"),
    "float": ("double", "real"),
    "float?": ("std::optional<double>", "optional_real"),
    "bool": ("bool", "boolean"),
    "bool?": ("std::optional<bool>", "optional_boolean"),
    "str": ("std::string_view", "string"),
    "str?": ("std::optional<std::string_view>", "optional_string"),
    "dtype": ("int32_t", "dtype"),
    "dtype?": ("std::optional<int32_t>", "optional_dtype"),
    "int[]": ("std::span<const int64_t>", "ints"),
    "bool[]": ("std::span<const int64_t>", "ints"),
    "int[]?": ("std::optional<std::span<const int64_t>>", "optional_ints"),
    "float[]": ("std::span<const double>", "floats"),
}


@dataclass(frozen=True)
class Argument:
    """One argument of a schema: its type without annotations and lengths (``"int[]"``), its name,
    its position.
    """

    kind: str
    name: str
    position: int

    @property
    def identifier(self) -> str:
        return f"{self.name}_" if self.name in RESERVED else self.name


@dataclass(frozen=True)
class Row:
    """What the headers need of a catalogue row."""

    name: str
    family: str
    schema: str
    shape: str
    tags: int
    refuses: tuple[str, ...]
    numbers: bool
    arguments: tuple[Argument, ...]
    words: tuple[str, ...]  #: of the name, lower case: ``("fused", "adam")``

    @property
    def struct(self) -> str:
        """The name as a type: ``_fused_adam_`` gives ``FusedAdam``."""
        return "".join(word[0].upper() + word[1:] for word in self.words)

    @property
    def namespace(self) -> str:
        """The name as a namespace: ``_fused_adam_`` gives ``fused_adam``."""
        name = "_".join(self.words)
        return f"{name}_" if name in RESERVED else name


def parse_arguments(schema: str, kernel_types: dict[str, str] | None = None) -> tuple[Argument, ...]:
    """Return the arguments of a schema, in order, with the types that a kernel reads where they are
    others.

    Examples
    --------
    >>> parse_arguments("topk(Tensor self, int k, int dim=-1, *, int[2]? s=(1, 2)) -> (Tensor values, Tensor indices)")[3].kind
    'int[]?'
    """
    kinds = kernel_types or {}
    return tuple(
        Argument(kinds.get(one.name, re.sub(r"\[\d+\]", "[]", one.type)), one.name, position)
        for position, one in enumerate(parse(schema).parameters)
    )


def read_catalogue() -> list[Row]:
    """Return the rows of the catalogue, which is imported without the compiled core: it may not be
    there yet.
    """
    declared: list[tuple[str, int]] = []

    def declare_operator(schema: str, shape: str, tags: int, *_: object) -> types.SimpleNamespace:
        declared.append((schema, tags))
        return types.SimpleNamespace(name=schema[: schema.index("(")])

    package = types.ModuleType("candelabra")
    package.__path__ = [str(PACKAGE / "python" / "candelabra")]
    core = types.ModuleType("candelabra._C")
    core.declare_operator = declare_operator  # type: ignore[attr-defined]
    core.declare_out_rule = lambda *rule: None  # type: ignore[attr-defined]
    package._C = core  # type: ignore[attr-defined]
    # An editable install has a finder of its own, which would give the catalogue of that checkout.
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if getattr(finder, "__module__", "").startswith("_frozen_importlib")
    ]
    sys.modules.update({"candelabra": package, "candelabra._C": core})
    sys.dont_write_bytecode = True
    catalogue = importlib.import_module("candelabra.catalogue")
    declaration = importlib.import_module("candelabra.catalogue.declaration")
    families = {name: family for family, names in catalogue.FAMILIES.items() for name in names}
    rows = []
    for schema, tags in declared:
        name = schema[: schema.index("(")]
        words = tuple(word for word in name.split("_") if word)
        # bernoulli_ is BernoulliInPlace because there is bernoulli; _fused_adam_ is FusedAdam.
        if name.endswith("_") and name[:-1] in families:
            words += ("in", "place")
        rows.append(
            Row(
                name,
                families[name],
                schema,
                declaration.FACTS[name].shape,
                tags,
                declaration.FACTS[name].refuses,
                bool(tags & declaration.NUMBERS),
                parse_arguments(schema, declaration.FACTS[name].kernel_types),
                words,
            )
        )
    return rows


HEAD = "// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.\n"


def arguments_header(family: str, rows: list[Row]) -> str:
    """Return ``arguments/FAMILY.hpp``."""
    guard = f"CANDELABRA_ARGUMENTS_{family.upper()}_HPP"
    lines = [
        f"{HEAD}// Arguments of the operators of the family {family}, for kernels:\n//\n"
        f"//   const arguments::{rows[0].struct} args(call);\n//\n"
        "// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.",
        f"#ifndef {guard}\n#define {guard}\n\n#include <optional>\n#include <span>\n#include <string_view>\n\n"
        '#include "candelabra/kernel.hpp"\n\nnamespace candelabra::arguments {\n',
    ]
    for row in rows:
        fields, readers = [], []
        for argument in row.arguments:
            if argument.kind not in READERS:
                continue
            kind, reader = READERS[argument.kind]
            fields.append(f"  {kind} {argument.identifier};")
            readers.append(f"{argument.identifier}(call.{reader}({argument.position}))")
            if row.numbers and argument.kind == "Tensor":
                # A number in a tensor's place: one of the two is null.
                fields.append(f"  const cb_scalar* {argument.name}_number;")
                readers.append(f"{argument.name}_number(call.optional_scalar({argument.position}))")
        if not fields:
            continue
        initializers = ",\n        ".join(readers)
        lines.append(
            f"// {row.schema}\nstruct {row.struct} {{\n" + "\n".join(fields) + "\n\n"
            f"  explicit {row.struct}(const kernel::Call& call)\n      : {initializers} {{}}\n}};\n"
        )
    lines.append(f"}}  // namespace candelabra::arguments\n\n#endif  // {guard}\n")
    return "\n".join(lines)


def positions_header(rows: list[Row]) -> str:
    """Return ``positions.hpp``."""
    guard = "CANDELABRA_POSITIONS_HPP"
    lines = [
        f"{HEAD}// Positions of arguments in the schema: candelabra::positions::topk::k is 1.\n"
        f"#ifndef {guard}\n#define {guard}\n\nnamespace candelabra::positions {{\n"
    ]
    for row in rows:
        names = ", ".join(argument.identifier for argument in row.arguments)
        if names:
            lines.append(f"namespace {row.namespace} {{\nenum Position : int {{ {names} }};\n}}")
    lines.append(f"\n}}  // namespace candelabra::positions\n\n#endif  // {guard}\n")
    return "\n".join(lines)


def c_header(rows: list[Row]) -> str:
    """Return ``positions.h``."""
    guard = "CANDELABRA_POSITIONS_H"
    lines = [
        HEAD.replace("// ", "/* ").replace(".\n", ". */\n")
        + f"/* Positions of arguments in the schema: call->arguments[CB_TOPK_K]. */\n#ifndef {guard}\n#define {guard}\n"
    ]
    for row in rows:
        prefix = "_".join(("CB", *row.words)).upper()
        names = ", ".join(f"{prefix}_{argument.name.upper()}" for argument in row.arguments)
        if names:
            lines.append(f"enum {{ {names} }};")
    lines.append(f"\n#endif /* {guard} */\n")
    return "\n".join(lines)


CATEGORIES = ("bool", "integer", "float", "complex")


def rows_header(rows: list[Row]) -> str:
    """Return ``operator_rows.hpp``."""
    guard = "CANDELABRA_OPERATOR_ROWS_HPP"
    lines = [
        f"{HEAD}// The rows of the catalogue, for hosts without Python that check the calls of kernels.\n"
        f"#ifndef {guard}\n#define {guard}\n\n#include <cstdint>\n#include <string_view>\n\n"
        "namespace candelabra {\n\n"
        "struct OperatorRow {\n"
        "  std::string_view name;\n"
        '  // Types and names, as in the schema: "Tensor self, int? dim". An argument that is changed has a !.\n'
        "  std::string_view parameters;\n"
        "  std::string_view rule;  // of its shapes\n"
        "  uint32_t tags;          // those of candelabra.catalogue.declaration\n"
        "  uint32_t refused;       // mask: the categories of dtypes that it refuses, of enum cb_scalar_kind\n"
        "};\n\n"
        "// Sorted by name.\n"
        "inline constexpr OperatorRow operator_rows[] = {"
    ]
    for row in sorted(rows, key=lambda one: one.name):
        parameters = ", ".join(
            f"{re.sub(r'[0-9]+', '', one.type)}{'!' if one.mutated else ''} {one.name}"
            for one in parse(row.schema).parameters
        )
        refused = sum(1 << CATEGORIES.index(category) for category in row.refuses)
        lines.append(f'    {{"{row.name}", "{parameters}", "{row.shape}", {row.tags}, {refused}}},')
    lines.append(f"}};\n\n}}  // namespace candelabra\n\n#endif  // {guard}\n")
    return "\n".join(lines)


def headers(rows: list[Row]) -> dict[str, str]:
    """Return the text of every generated header, by its path below ``candelabra/``."""
    structs: dict[str, str] = {}
    for row in rows:
        if structs.setdefault(row.struct, row.name) != row.name:
            raise ValueError(
                f"the operators {structs[row.struct]} and {row.name} would both be arguments::{row.struct}"
            )
    families = {row.family: [other for other in rows if other.family == row.family] for row in rows}
    texts = {f"arguments/{family}.hpp": arguments_header(family, members) for family, members in families.items()}
    return texts | {
        "positions.hpp": positions_header(rows),
        "positions.h": c_header(rows),
        "operator_rows.hpp": rows_header(rows),
    }


def write_headers(folder: Path, with_headers: bool) -> None:
    """Write the generated headers below ``folder/candelabra``, and with them those of ``include/``
    where asked for.
    """
    target = folder / "candelabra"
    texts = {name: text.encode() for name, text in headers(read_catalogue()).items()}
    if with_headers:
        include = PACKAGE / "include" / "candelabra"
        texts |= {str(path.relative_to(include)): path.read_bytes() for path in include.rglob("*.h*")}
        for stale in target.rglob("*.h*"):
            if str(stale.relative_to(target)) not in texts:
                stale.unlink()
    for name, text in texts.items():
        path = target / name
        if not path.exists() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where candelabra/arguments and candelabra/positions.h go")
    parser.add_argument("--with-headers", action="store_true", help="copy the headers of include/ as well")
    given = parser.parse_args()
    write_headers(given.folder, given.with_headers)


if __name__ == "__main__":
    main()
