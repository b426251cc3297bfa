"""Type-check each package separately. The packages share the namespace `candelabra`, so mypy sees
one source tree at a time, on top of the core's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = ROOT / "packages" / "tensor-core" / "python"
TREES = [
    CORE,
    *sorted(ROOT.glob("packages/*/src")),
    *(path for path in sorted(ROOT.glob("packages/*/python")) if path != CORE),
]


def packages_in(tree: Path) -> list[str]:
    """Return the import names of the regular packages in a source tree."""
    found = []
    for init in sorted(tree.glob("*/__init__.py")) + sorted(tree.glob("candelabra/*/__init__.py")):
        name = ".".join(init.parent.relative_to(tree).parts)
        if not name.startswith("candelabra.") or tree != CORE:
            found.append(name)
    return found


def main() -> int:
    failed = False
    for tree in TREES:
        names = packages_in(tree)
        if not names:
            continue
        # Every package sees the core's stubs. Modules of other trees are untyped.
        search = os.pathsep.join(str(path) for path in dict.fromkeys([tree, CORE]))
        arguments = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "tools" / "mypy.ini")]
        for name in names:
            arguments += ["-p", name]
        print("mypy", *names, flush=True)
        failed |= subprocess.run(arguments, env={**os.environ, "MYPYPATH": search}, cwd=ROOT / "tools").returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
