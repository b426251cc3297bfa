"""Write the tiers of kernels into docs/backends.md: ``python tools/make_tiers.py``. With
``--check``, only compare.

The tiers are facts of the catalogue. Which operators a kernel unlocks is measured: on a device with
exactly the tier "required", over the reference samples of each operator. This needs the CPU backend
and a C compiler.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "integration" / "tiers"))

import few  # noqa: E402

from candelabra.backends import tiers  # noqa: E402
from candelabra.catalogue import FAMILIES  # noqa: E402
from candelabra.testing.conformance import applicable  # noqa: E402

PAGE = ROOT / "docs" / "backends.md"
BEGIN, END = "<!-- made by tools/make_tiers.py: begin -->", "<!-- made by tools/make_tiers.py: end -->"
#: Of a kernel that unlocks more operators, the table has the number only.
MOST_NAMES = 8


def unlocked() -> dict[str, list[str]]:
    """Return for each kernel of the tier "required" the operators that call it."""
    few.install()
    required = tiers.operators_of("required")
    result: dict[str, list[str]] = {name: [] for name in required}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in applicable():
            if name not in required:
                for kernel in few.kernels_called(name):
                    result[kernel].append(name)
    return result


def by_family(names: list[str]) -> list[str]:
    """Return table lines of names, a line for each family."""
    lines = ["| family | operators |", "| -- | -- |"]
    for family, members in FAMILIES.items():
        chosen = [f"`{name}`" for name in members if name in names]
        if chosen:
            lines.append(f"| {family} | {', '.join(chosen)} |")
    return lines


def text() -> str:
    """Return the section of the page."""
    required, fast, complete = (tiers.operators_of(tier) for tier in tiers.TIERS)
    lines = [
        BEGIN,
        "",
        f"The tier **required** has {len(required)} kernels:",
        "",
        "| kernel | unlocks |",
        "| -- | -- |",
    ]
    for kernel, names in unlocked().items():
        listed = ", ".join(f"`{name}`" for name in names)
        shown = listed if len(names) <= MOST_NAMES else f"{len(names)} operators"
        lines.append(f"| `{kernel}` | {shown or 'nothing else'} |")
    lines += ["", f"The tier **fast** has {len(fast)} more:", "", *by_family(fast)]
    lines += ["", f"The tier **complete** has {len(complete)} more:", "", *by_family(complete), "", END]
    return "\n".join(lines)


def main() -> int:
    """Write the section, or return 1 if the page has another one."""
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    made = head + text() + tail
    if "--check" in sys.argv[1:]:
        if made != page:
            print(f"{PAGE.relative_to(ROOT)} is not current: python tools/make_tiers.py")
        return int(made != page)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
