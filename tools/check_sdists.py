"""Build the source distribution of each package, and the wheels of the pure ones from it.

pip unpacks a source distribution with the filter "data" of tarfile, which refuses links out of the
archive. Run by ``nox -s wheels`` in the environment that builds wheels. ``python
tools/check_sdists.py FOLDER`` keeps them in a folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LICENSE = (ROOT / "LICENSE").read_bytes()
BUILD = "import importlib, sys; importlib.import_module(sys.argv[1]).build_sdist(sys.argv[2])"


def check(package: Path, folder: Path) -> None:
    """Build a package's source distribution, unpack it as pip does, and build its wheel if it
    is pure.
    """
    backend = tomllib.loads((package / "pyproject.toml").read_text())["build-system"]["build-backend"]
    made = folder / package.name
    made.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, backend, str(made)], cwd=package, check=True)
    (archive,) = made.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(made, filter="data")
    (unpacked,) = (path for path in made.iterdir() if path.is_dir())
    if (unpacked / "LICENSE").read_bytes() != LICENSE:
        raise SystemExit(f"{archive.name} has another LICENSE than the repository")
    if backend.startswith("hatchling"):
        wheels = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(made), str(archive)]
        subprocess.run([sys.executable, *wheels], check=True)
    if len(sys.argv) > 1:
        shutil.copy(archive, sys.argv[1])
    print(f"{archive.name}: {os.path.getsize(archive) / 1e3:.0f} kB")


def main() -> None:
    """Check all packages."""
    with tempfile.TemporaryDirectory() as folder:
        for project in sorted(ROOT.glob("packages/*/pyproject.toml")):
            check(project.parent, Path(folder))


if __name__ == "__main__":
    main()
