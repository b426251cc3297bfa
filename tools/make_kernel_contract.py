"""Write docs/kernel-contract.md, the contract of every operator's kernel: ``python
tools/make_kernel_contract.py [PATH]``.

The general rules are in docs/kernel-contract.template.md. The tables are generated from the
operator catalogue.
"""

from __future__ import annotations

import sys
from pathlib import Path

from candelabra.backends.tiers import is_decomposed
from candelabra.catalogue import FACTS, FAMILIES, OPERATORS
from candelabra.catalogue import declaration as tags

DOCS = Path(__file__).parent.parent / "docs"
TEMPLATE = DOCS / "kernel-contract.template.md"
#: The end of the template's text and the start of the operators.
MARK = "<!-- operators -->\n"
#: What a tag means for a kernel, without tags that concern only the Python functions.
WORDS = {
    tags.INPLACE: "has an in-place variant",
    tags.RANDOM: "draws random numbers",
    tags.NUMBERS: "takes numbers for tensors",
    tags.TENSOR_FIRST: "the first argument is always a tensor",
    tags.DATA_DEPENDENT: "the kernel asks for the memory of its results",
    tags.NONDETERMINISTIC: "may be non-deterministic",
    tags.NONDIFFERENTIABLE: "no gradient",
    tags.ONE_VALUE: "elements of the output may share memory",
}


def has_kernel(name: str) -> bool:
    """Return whether a backend can have a kernel. Views and operators tagged CORE have none."""
    return not OPERATORS[name].tags & (tags.VIEW | tags.CORE)


def kind(name: str) -> str:
    """Return what a device without a kernel does, and the tier of the kernel."""
    if OPERATORS[name].tags & tags.COMPOSITE:
        words = "has a decomposition"
    else:
        words = "primitive with a decomposition" if is_decomposed(name) else "primitive"
    return f"{words}; tier {FACTS[name].tier}" if FACTS[name].tier else words


def said(name: str) -> str:
    """Describe an operator beside its schema: shape rule, kind, tags in words."""
    facts = [f"Shape rule `{FACTS[name].shape}`", kind(name)]
    facts += [words for tag, words in WORDS.items() if OPERATORS[name].tags & tag]
    if FACTS[name].refuses:
        *others, last = FACTS[name].refuses
        facts.append(f"never called with {', '.join(others)}{' or ' if others else ''}{last} dtypes")
    return "; ".join(facts) + "."


def entry(names: list[str]) -> list[str]:
    """Return the entry of operators with the same description: schemas, description, kernel
    arguments.
    """
    title = ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    schemas = [OPERATORS[name].schema for name in names]
    return [f"### {title}", "", "```text", *schemas, "```", "", said(names[0]), "", FACTS[names[0]].sees.strip(), ""]


def page() -> str:
    """Return the page: the template, then every operator that can have a kernel, by family."""
    lines = []
    for family, names in FAMILIES.items():
        groups: dict[tuple[str, str], list[str]] = {}
        for name in filter(has_kernel, names):
            groups.setdefault((said(name), FACTS[name].sees), []).append(name)
        if groups:
            lines += [f"## {family}", ""]
        for members in groups.values():
            lines += entry(members)
    head, mark, rest = TEMPLATE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{TEMPLATE} has no line {MARK!r}")
    return head + "\n".join(lines) + rest


def main() -> int:
    missing = [name for name in OPERATORS if has_kernel(name) and not FACTS[name].sees]
    if missing:
        print(f"the catalogue does not say what these kernels see: {', '.join(missing)}", file=sys.stderr)
        return 1
    target = Path(sys.argv[1]) if sys.argv[1:] else DOCS / "kernel-contract.md"
    target.write_text(page(), encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
