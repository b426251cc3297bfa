"""Check the contracts of ``tools/importlinter.toml``: which modules may import which.

``python tools/lint_imports.py [OPTIONS OF lint-imports]`` needs import-linter, but neither the
compiled core nor installed packages. The distributions share the package ``candelabra``, which the
core extends when it is imported. The linter looks for a package's modules in one folder and imports
nothing, so the sources are copied to one folder first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = ROOT / "tools" / "importlinter.toml"


def merge_sources(target: Path) -> None:
    """Copy the Python sources of all packages below ``target``, as installing them would."""
    for pattern in ("packages/*/python", "packages/*/src"):
        for sources in sorted(ROOT.glob(pattern)):
            for source in sources.glob("candelabra/**/*.py"):
                copy = target / source.relative_to(sources)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        merge_sources(Path(folder))
        command = [
            shutil.which("lint-imports") or "lint-imports",
            "--config",
            str(CONTRACTS),
            "--no-cache",
            "--no-logo",
        ]
        environment = {**os.environ, "PYTHONPATH": folder}
        return subprocess.run([*command, *sys.argv[1:]], cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
