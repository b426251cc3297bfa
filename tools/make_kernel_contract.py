"""Write docs/kernel-contract.md, the contract of every operator's kernel: ``python
tools/make_kernel_contract.py [PATH]``.

The general rules are in docs/kernel-contract.template.md. The tables are generated from the
operator catalogue.
"""

from __future__ import annotations

import sys
from pathlib import Path

from candelabra.backends.contract import entry, has_kernel, said
from candelabra.catalogue import FACTS, FAMILIES, OPERATORS

DOCS = Path(__file__).parent.parent / "docs"
TEMPLATE = DOCS / "kernel-contract.template.md"
#: The end of the template's text and the start of the operators.
MARK = "<!-- operators -->\n"


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
