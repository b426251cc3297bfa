"""Writes the pages of the reference, one for each public operator and function, from its docstring;
`conf.py` runs this on each build.

A page says what the operator computes, how it is called, what kind it is, and in which files its
parts are.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring

import candelabra
from candelabra._C import Operator
from candelabra.catalogue import FACTS, FAMILIES, OPERATORS
from candelabra.catalogue.declaration import COMPOSITE, CORE, HIDDEN, VIEW

ROOT = Path(__file__).parent.parent
#: The namespaces that have operators, in the order in which a name's page is chosen.
NAMESPACES = ("", "linalg", "fft", "special", "signal.windows", "nn.functional")
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}
#: Where an operator's parts are: patterns of files, and an expression that finds it in them. The
#: row names the shape rule, a function without the leading underscore.
PARTS = {
    "declared in": ("packages/tensor-core/python/candelabra/catalogue/{family}.py", ""),
    "shape rule": ("packages/tensor-core/src/shapes/**/*.cpp", r"^void {shape}\(Call& call\)"),
    "CPU kernel": ("packages/backend-cpu/src/kernels/**/*.cpp", r'>\(\s*"{name}"'),
    "CUDA kernel": ("packages/backend-cuda/src/kernels/**/*.cu", r'>\(\s*"{name}"'),
    "gradient": ("packages/autograd/src/candelabra/autograd/derivatives/*.py", '"{name}"'),
    "composite of": ("packages/tensor-core/python/candelabra/composite/**/*.py", r'@decomposes\("{name}"\)'),
    "reference": ("packages/tensor-core/python/candelabra/testing/reference/*.py", '"{name}"'),
    "test": ("packages/backend-cpu/tests/**/test_{family}.py", ""),
}


#: The families in the order of the index, by what a reader looks for; a name that ends with "*"
#: stands for all families that begin so. What is in none comes last.
SUBJECTS = {
    "Making tensors": ["creation", "from_data", "like", "ranges", "random", "binomial", "multinomial", "poisson", "mapped_files"],
    "Shapes and views": ["views", "view_copies", "broadcasting", "joining", "splitting", "diagonals", "copying"],
    "Indices and order": ["indexing", "sorting", "order_statistics", "segments", "histograms", "hashing"],
    "Mathematics, element by element": ["elementwise", "comparison", "special", "activation"],
    "Reductions and scans": ["reduction", "scan", "softmax", "covariance", "gradient"],
    "Linear algebra": [
        "linalg", "solving", "factorization", "matrix_exp", "low_rank", "einsum", "linear", "distance", "cdist",
    ],
    "Signals": ["fft", "spectrum", "signal.windows"],
    "Layers as functions": ["nn.functional:*"],
    "Networks": [
        "convolution", "pooling", "spatial", "normalization", "recurrent", "embedding", "interpolation", "padding", "native",
    ],
    "The tensor itself": ["settings", "tensor_protocol", "names", "control_flow", "other_layouts"],
}  # fmt: skip


@dataclass
class Entry:
    """What a page is about."""

    name: str
    target: Any
    family: str
    others: list[str] = field(default_factory=list)

    @property
    def is_operator(self) -> bool:
        return isinstance(self.target, Operator)


def namespace(name: str) -> Any:
    """``candelabra`` and what is under it."""
    return importlib.import_module(f"candelabra.{name}") if name else candelabra


def public_names(name: str) -> list[str]:
    """The functions that a namespace shows; modules, types and constants are not among them."""
    module = namespace(name)
    names = getattr(module, "__all__", None) or [item for item in dir(module) if not item.startswith("_")]
    if not name:
        names = sorted({*names, *dir(module), *candelabra.assembly.NN_FUNCTIONS, *candelabra.assembly.NATIVE_FUNCTIONS})
    found = []
    for item in names:
        target = getattr(module, item, None)
        ours = str(getattr(target, "__module__", "")).startswith("candelabra")
        if not item.startswith("_") and (isinstance(target, Operator) or (inspect.isroutine(target) and ours)):
            found.append(item)
    return found


def family_of(target: Any, space: str) -> str:
    """The family of an operator; of a function, the file that it is written in."""
    if isinstance(target, Operator):
        name = target.name
        return FAMILY_OF.get(name) or FAMILY_OF.get(name.removesuffix("_")) or "other"
    if space == "nn.functional":
        return f"nn.functional: {file_of(target)}"
    if space:
        return space
    return file_of(target)


def file_of(target: Any) -> str:
    """The stem of the file that a function is written in; what is written in C++ counts as the
    core's.
    """
    code = getattr(inspect.unwrap(target), "__code__", None)
    if code is None:
        return "settings"
    path = Path(code.co_filename)
    return path.stem if {"composite", "functional"} & set(path.parts[-3:-1]) else "settings"


def collect() -> dict[str, Entry]:
    """Every public operator and function by its first name; further names go with it."""
    entries: dict[int, Entry] = {}
    keep = []
    for space in NAMESPACES:
        for item in public_names(space):
            target = getattr(namespace(space), item)
            keep.append(target)
            name = ".".join(filter(None, ["candelabra", space, item]))
            if id(target) in entries:
                entries[id(target)].others.append(name)
            elif not (isinstance(target, Operator) and target.functional is not None):
                entries[id(target)] = Entry(name, target, family_of(target, space))
    for name in dir(candelabra.Tensor):
        target = inspect.getattr_static(candelabra.Tensor, name)
        if name.startswith("_"):
            continue
        if isinstance(target, Operator) and target.functional is not None:
            target = target.functional
        if id(target) in entries:
            entries[id(target)].others.append(f"Tensor.{name}")
        elif inspect.isroutine(target) or isinstance(target, Operator):
            keep.append(target)
            entries[id(target)] = Entry(f"candelabra.Tensor.{name}", target, family_of(target, ""))
    return {entry.name: entry for entry in sorted(entries.values(), key=lambda entry: entry.name)}


def signature(entry: Entry) -> str:
    """The parameters as Python writes them, without annotations."""
    if entry.is_operator:
        return schema_signature(entry.target.schema)
    written = re.match(r"\w+(\(.*\))", inspect.cleandoc(entry.target.__doc__ or ""))
    try:
        parameters = inspect.signature(entry.target)
    except (TypeError, ValueError):
        return written[1] if written else "(...)"
    plain = [parameter.replace(annotation=parameter.empty) for parameter in parameters.parameters.values()]
    text = str(parameters.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    # The representation of a default that is no literal cannot be parsed as one.
    return re.sub(r"<[^>]*>", "...", text)


def schema_signature(schema: str) -> str:
    """``sum(Tensor self, int[]? dim=None, ...) -> Tensor`` as ``(input, dim=None, ...)``."""
    inside = schema[schema.index("(") + 1 : schema.index(") ->")]
    parts = []
    for part in filter(None, re.split(r", (?![^()\[\]]*[)\]])", inside)):
        words = part.split(" ", 1)
        parts.append(
            part
            if part == "*"
            else words[-1].replace("self", "input", 1)
            if words[-1].split("=")[0] == "self"
            else words[-1]
        )
    return f"({', '.join(parts)})"


def kind(entry: Entry) -> str:
    """Primitive, composite, view, or function."""
    if not entry.is_operator:
        return "function, made of operators"
    tags = entry.target.tags
    if tags & VIEW:
        return "view: the core returns it without a kernel"
    if tags & CORE:
        return "done by the core on every device"
    return (
        "composite: a decomposition, which a backend may override"
        if tags & COMPOSITE
        else "primitive: backends have a kernel"
    )


@functools.cache
def texts(pattern: str) -> dict[str, str]:
    """The files of a pattern with their text, by path from the repository's root."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(pattern))}


def files_with(pattern: str, expression: str, family: str) -> list[str]:
    """The files of a pattern where an expression is found; those of the family's name alone, if
    there are any.
    """
    found = [path for path, content in texts(pattern).items() if re.search(expression, content, re.MULTILINE)]
    return [path for path in found if Path(path).stem == family] or found


def parts(entry: Entry) -> list[tuple[str, str]]:
    """Where the parts of an operator are; of a function, where it is written."""
    if entry.is_operator:
        name = entry.target.name if entry.target.name in FAMILY_OF else entry.target.name.removesuffix("_")
        if name not in FAMILY_OF:
            return []
        family = FAMILY_OF[name]
        known = {"name": name, "family": family, "shape": FACTS[name].shape.lstrip("_")}
        return [
            (part, path)
            for part, (pattern, expression) in PARTS.items()
            for path in files_with(pattern.format(**known), expression.format(**known), family)
        ]
    code = getattr(inspect.unwrap(entry.target), "__code__", None)
    if code is None or not Path(code.co_filename).is_relative_to(ROOT):
        return []
    return [("written in", str(Path(code.co_filename).relative_to(ROOT)))]


def text_of(target: Any) -> str:
    """The docstring; without its first line where that is the signature, as C++ has to write it."""
    text = inspect.cleandoc(target.__doc__ or "")
    head, _, rest = text.partition("\n\n")
    return rest if re.fullmatch(r"\w+\(.*\)( -> .*)?", head) else text


def docstring(target: Any) -> list[str]:
    """The docstring as reStructuredText."""
    text = text_of(target)
    config = Config(napoleon_use_rtype=False, napoleon_use_param=True)
    return NumpyDocstring(text, config, what="function").lines()


def page(entry: Entry) -> str:
    """The page of one entry."""
    title = entry.name
    lines = [title, "=" * len(title), "", f".. py:function:: {entry.name}{signature(entry)}", ""]
    lines += [f"   {line}" if line else "" for line in docstring(entry.target)]
    lines += ["", ".. list-table::", "   :widths: 20 80", ""]
    rows = [
        ("family", f":doc:`{entry.family} <{file_name(entry.family)}>` of :doc:`all operators <index>`"),
        ("kind", kind(entry)),
    ]
    if entry.others:
        rows.append(("also", ", ".join(f"``{name}``" for name in entry.others)))
    if entry.is_operator and entry.target.inplace is not None and not entry.target.tags & HIDDEN:
        rows.append(("in place", f"``Tensor.{entry.target.inplace.name}``"))
    rows += [(part, f"``{path}``") for part, path in parts(entry)]
    for left, right in rows:
        lines += [f"   * - {left}", f"     - {right}"]
    return "\n".join(lines) + "\n"


def summary(target: Any) -> str:
    """The first sentence of a docstring."""
    text = text_of(target).split("\n\n")[0].replace("\n", " ")
    return text.split(". ")[0].rstrip(".") + "."


def family_page(family: str, entries: list[Entry]) -> str:
    """The table of a family, which also places its pages in the navigation."""
    lines = [family, "=" * len(family), "", ".. list-table::", "   :widths: 35 65", ""]
    for entry in entries:
        lines += [
            f"   * - :py:func:`{entry.name.removeprefix('candelabra.')} <{entry.name}>`",
            f"     - {summary(entry.target)}",
        ]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    lines += [f"   {entry.name}" for entry in entries]
    return "\n".join(lines) + "\n"


def tensor_page(entries: Iterable[Entry]) -> str:
    """The page of the class Tensor: its attributes, and its methods with links to their pages."""
    methods = {}
    for entry in entries:
        names = [entry.name.removeprefix("candelabra."), *entry.others]
        if entry.is_operator and entry.target.inplace is not None and not entry.target.tags & HIDDEN:
            names.append(f"Tensor.{entry.target.inplace.name}")
        if mine := sorted({name.removeprefix("Tensor.") for name in names if name.startswith("Tensor.")}):
            links = ", ".join(f":py:func:`{name} <{entry.name}>`" for name in mine)
            methods[mine[0]] = (links, summary(entry.target))
    tensor = candelabra.Tensor
    statics = {name: inspect.getattr_static(tensor, name) for name in dir(tensor) if not name.startswith("_")}
    attributes = {name: target for name, target in statics.items() if inspect.isdatadescriptor(target)}
    lines = ["candelabra.Tensor", "=" * 17, "", ".. py:class:: candelabra.Tensor", "", f"   {tensor.__doc__}", ""]
    for title, rows in {
        "Attributes": [(f"``{name}``", summary(target)) for name, target in attributes.items()],
        "Methods": [methods[name] for name in sorted(methods)],
    }.items():
        lines += [title, "-" * len(title), "", ".. list-table::", "   :widths: 35 65", ""]
        for left, right in rows:
            lines += [f"   * - {left}", f"     - {right}"]
        lines.append("")
    return "\n".join(lines)


def by_subject(families: dict[str, list[Entry]]) -> dict[str, list[str]]:
    """Return the families of each subject, in the order of the index."""
    found: dict[str, list[str]] = {}
    left = sorted(families)
    for subject, names in SUBJECTS.items():
        for name in names:
            mine = [family for family in left if fnmatch.fnmatchcase(family, name)]
            found.setdefault(subject, []).extend(mine)
            left = [family for family in left if family not in mine]
    return found | {"Further": left}


def index_page(families: dict[str, list[Entry]]) -> str:
    """All families, by subject."""
    title = "Operators and functions"
    count = sum(map(len, families.values()))
    text = f"{count} of them, each with a page. :doc:`candelabra.Tensor` lists those that are methods."
    lines = [title, "=" * len(title), "", text, ""]
    lines += [".. toctree::", "   :hidden:", "", "   candelabra.Tensor", ""]
    for subject, names in by_subject(families).items():
        lines += [subject, "-" * len(subject), "", ".. list-table::", "   :widths: 25 75", ""]
        for family in names:
            members = families[family]
            shown = ", ".join(f":py:func:`{entry.name.split('.')[-1]} <{entry.name}>`" for entry in members[:8])
            more = f" and {len(members) - 8} more" if len(members) > 8 else ""
            lines += [f"   * - :doc:`{family} <{file_name(family)}>`", f"     - {shown}{more}"]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {file_name(family)}" for family in names]
        lines.append("")
    return "\n".join(lines) + "\n"


def file_name(family: str) -> str:
    """The name of a family's page, which must not be that of an operator."""
    return "family-" + re.sub(r"[^a-z0-9]+", "-", family.lower())


def write(folder: Path) -> int:
    """Write all pages; leave those alone that have not changed, so that Sphinx need not read them
    again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    families: dict[str, list[Entry]] = {}
    pages: dict[str, str] = {}
    entries = collect()
    for entry in entries.values():
        families.setdefault(entry.family, []).append(entry)
        pages[f"{entry.name}.rst"] = page(entry)
    for family, members in families.items():
        pages[f"{file_name(family)}.rst"] = family_page(family, members)
    pages["candelabra.Tensor.rst"] = tensor_page(entries.values())
    pages["index.rst"] = index_page(families)
    for old in folder.glob("*.rst"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return len(entries)


def undocumented() -> list[str]:
    """Operators of the catalogue without a docstring."""
    return [name for name, operator in OPERATORS.items() if not operator.__doc__ and not operator.tags & HIDDEN]
