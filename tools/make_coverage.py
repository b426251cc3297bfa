"""Write docs/coverage.md, the operators that each backend has a kernel for: ``python
tools/make_coverage.py``. With ``--check``, only compare.
"""

from __future__ import annotations

import sys
from pathlib import Path

from candelabra import _C
from candelabra.backends import installed, load
from candelabra.catalogue import FAMILIES, OPERATORS
from candelabra.catalogue.declaration import COMPOSITE, CORE, VIEW

PAGE = Path(__file__).parent.parent / "docs" / "coverage.md"
#: The backends of this repository. The table excludes other installed backends.
DEVICE_TYPES = ("cpu", "cuda")


def kernels() -> dict[str, frozenset[str]]:
    """Return the operators with a kernel, by device type, of the installed backends."""
    found = {}
    for device_type in DEVICE_TYPES:
        if device_type in installed():
            load(device_type)
            found[device_type] = frozenset(_C.backend_info(device_type)["kernels"])
    return found


def kind(name: str) -> str:
    """Return how an operator is computed."""
    tags = OPERATORS[name].tags
    return "view" if tags & VIEW else "core" if tags & CORE else "composite" if tags & COMPOSITE else "primitive"


def cell(name: str, with_kernel: frozenset[str]) -> str:
    """Return a backend's table cell for an operator."""
    if kind(name) in ("view", "core"):
        return "core"
    return "kernel" if name in with_kernel else "composite" if kind(name) == "composite" else "missing"


def table(with_kernels: dict[str, frozenset[str]]) -> str:
    """Return the page."""
    device_types = list(with_kernels)
    lines = [
        "# Coverage",
        "",
        "Every operator of the catalogue, by family. A *primitive* needs a kernel in each backend; a *composite* is made of other",
        "operators, and a backend may have a kernel of its own; the core itself does a *view* and what holds for every device.",
        "",
        "Written by `python tools/make_coverage.py` from the catalogue and the kernels that the installed backends register.",
        "",
        "| Kind | Operators | " + " | ".join(f"{device} kernels" for device in device_types) + " |",
        "| --- | ---: |" + " ---: |" * len(device_types),
    ]
    for label in ("primitive", "composite", "view", "core"):
        names = [name for name in OPERATORS if kind(name) == label]
        counts = [str(sum(name in with_kernels[device] for name in names)) for device in device_types]
        lines.append(f"| {label} | {len(names)} | " + " | ".join(counts) + " |")
    for family, names in FAMILIES.items():
        if not names:
            continue
        lines += ["", f"## {family}", "", "| Operator | Kind | " + " | ".join(device_types) + " |"]
        lines.append("| --- | --- |" + " --- |" * len(device_types))
        for name in names:
            cells = " | ".join(cell(name, with_kernels[device]) for device in device_types)
            lines.append(f"| `{name}` | {kind(name)} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    target = Path(sys.argv[1]) if sys.argv[1:] else PAGE
    target.write_text(table(kernels()))
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
