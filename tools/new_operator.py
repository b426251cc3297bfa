"""Add an operator: ``nox -s new-operator -- NAME FAMILY``, see CONTRIBUTING.md.

Writes its row, its decomposition, its reference and its samples. What it writes works: an operator
that copies one floating-point tensor, with tests that pass. Then change what it computes.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = "packages/tensor-core/python/candelabra"
SAMPLES = "packages/autograd/tests/samples_activation.py"
CHANGELOG = "packages/tensor-core/CHANGELOG.md"
WIDTH = 120
#: What a file may have (tools/lint_layout.py).
MOST_LINES = 600
#: Files of the catalogue without rows.
NO_FAMILIES = {"__init__", "declaration", "schemas", "signatures"}

ROW = """
operator(
    "{name}(Tensor self) -> Tensor", shape="activation", tags=COMPOSITE,
    doc=document(
        "Return a copy.",
        ">>> candelabra.{name}(candelabra.tensor([1.0, 2.0]))\\ntensor([1., 2.])",
        input="Tensor: floating point, of any shape",
        returns="Tensor: of the shape and dtype of `input`",
    ),
)  # fmt: skip
"""
DECOMPOSITION = """

@decomposes("{name}")
def {name}(self: Tensor) -> Tensor:
    return self.clone()
"""
REFERENCE = """
REFERENCES["{name}"] = Reference(lambda a: a, lambda rng, dtype: (Sample((a,)) for a in layouts(rng, dtype)), FLOATS)
"""
SAMPLE = '    "{name}": _one(),\n'
CHANGE = "- The operator `{name}`.\n"


class RefusedError(Exception):
    """Nothing is written, and why."""


def kind(name: str) -> int:
    """Return where the lint's order has a name: constants, classes, then functions."""
    return 0 if name.isupper() else 1 if name[:1].isupper() else 2


def with_imports(text: str, module: str, *names: str) -> str:
    """Return a file's text whose import of a module has these names, too."""
    wanted = "." * (len(module) - len(module.lstrip("."))), module.lstrip(".")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and ("." * node.level, node.module) == wanted:
            break
    else:
        raise RefusedError(f"there is no import from {module}")
    found = {alias.name for alias in node.names}
    if found.issuperset(names):
        return text
    every = sorted(found.union(names), key=lambda name: (kind(name), name))
    line = f"from {module} import {', '.join(every)}"
    if len(line) > WIDTH:
        line = "\n".join([f"from {module} import (", *(f"    {name}," for name in every), ")"])
    lines = text.splitlines()
    lines[node.lineno - 1 : node.end_lineno] = [line]
    return "\n".join(lines) + "\n"


def families(root: Path) -> list[Path]:
    """Return the files that have rows."""
    return sorted(path for path in (root / CORE / "catalogue").glob("*.py") if path.stem not in NO_FAMILIES)


def decomposition_file(root: Path, family: str) -> Path:
    """Return the file of a family's decompositions."""
    found = sorted((root / CORE / "composite").glob(f"*/{family}.py"))
    if not found:
        stems = {path.stem for path in (root / CORE / "composite").glob("*/*.py")}
        known = ", ".join(path.stem for path in families(root) if path.stem in stems)
        raise RefusedError(f"there is no family {family!r} with decompositions; there are {known}")
    return found[0]


def check(root: Path, name: str) -> None:
    """Refuse a name that is taken or that is none."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        raise RefusedError(f"{name!r} is no name of an operator: small letters, digits and underscores")
    for path in families(root):
        if re.search(rf'"{name}[("]', path.read_text()):
            raise RefusedError(f"{path.relative_to(root)} has {name!r} already")


def first_section_with(changelog: str, line: str) -> str:
    """Return a changelog with a line at the end of its first section."""
    headings = list(re.finditer(r"^## ", changelog, re.M))
    end = headings[1].start() if len(headings) > 1 else len(changelog)
    return f"{changelog[:end].rstrip()}\n{line}" + (f"\n{changelog[end:]}" if len(headings) > 1 else "")


def texts(root: Path, name: str, family: str) -> dict[Path, str]:
    """Return the new text of each file that gets a part of the operator."""
    check(root, name)
    decomposition = decomposition_file(root, family)
    catalogue, reference = (root / CORE / f"{folder}/{family}.py" for folder in ("catalogue", "testing/reference"))
    samples, changelog = root / SAMPLES, root / CHANGELOG
    row = with_imports(catalogue.read_text(), ".declaration", "COMPOSITE", "document", "operator")
    rule = with_imports(decomposition.read_text(), "..registration", "decomposes")
    expected = with_imports(
        reference.read_text(), "candelabra.testing.sampling", "FLOATS", "Reference", "Sample", "layouts"
    )
    before, end, after = samples.read_text().rpartition("}  # fmt: skip")
    return {
        catalogue: row + ROW.format(name=name),
        decomposition: rule + DECOMPOSITION.format(name=name),
        reference: expected + REFERENCE.format(name=name),
        samples: before + SAMPLE.format(name=name) + end + after,
        changelog: first_section_with(changelog.read_text(), CHANGE.format(name=name)),
    }


def left(name: str, written: list[Path], root: Path) -> list[str]:
    """Return the lines that say what was written, and what is left to do."""
    return [
        "written, in " + ", ".join(str(path.relative_to(root)) for path in written),
        "next:",
        "- write what it computes into the decomposition, and the same with NumPy into the reference",
        "- describe it in the row, with another example; CONTRIBUTING.md lists what a row can state",
        "- add a kernel to packages/backend-cpu/src/kernels or a derivative, if that is faster",
        "- run `python tools/make_stubs.py`, then",
        f"  `nox -s tests-tensor-core tests-autograd -- -k {name}`",
        f"- say what it is in {CHANGELOG}",
        *(
            f"- {path.relative_to(root)} has more than {MOST_LINES} lines now: give some of its rows a family of their own"
            for path in written
            if path.suffix == ".py" and len(path.read_text().splitlines()) > MOST_LINES
        ),
    ]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the parts of the operator that the arguments name."""
    parser = argparse.ArgumentParser(prog="nox -s new-operator --", description="Add an operator.")
    parser.add_argument("name", help="ATen's name, if it has one: softsquare")
    parser.add_argument("family", help="the stem of a file of the catalogue: elementwise")
    given = parser.parse_args(arguments)
    try:
        written = texts(root, given.name, given.family)
    except RefusedError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    for path, text in written.items():
        path.write_text(text)
    print("\n".join(left(given.name, list(written), root)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
