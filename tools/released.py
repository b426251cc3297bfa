"""Rebuild wheels of released versions: ``python tools/released.py FOLDER [NAME...]``.

Each tag ``candelabra-NAME-vVERSION`` gives a wheel in the folder, unless it is there. Run by
``nox -s tests-released`` in the environment that builds wheels.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from release import ROOT, TAG, git


def wheel_of(root: Path, tag: str, folder: Path) -> Path:
    """Return the wheel of a tag; it is built from the sources of the tag if it is not there."""
    found = TAG.fullmatch(tag)
    if found is None:
        raise ValueError(f"{tag!r} is no tag of a release")
    distribution, version = found.groups()
    package = distribution.removeprefix("candelabra-")
    pattern = f"{distribution.replace('-', '_')}-{version}-*.whl"
    for wheel in folder.glob(pattern):
        return wheel
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as sources:
        git(root, "worktree", "add", "--detach", f"{sources}/tree", tag)
        try:
            command = [
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "-q",
                "--no-deps",
                "--no-build-isolation",
                "-w",
                str(folder),
            ]
            subprocess.run([*command, f"{sources}/tree/packages/{package}"], check=True)
        finally:
            git(root, "worktree", "remove", "--force", f"{sources}/tree")
    (wheel,) = folder.glob(pattern)
    return wheel


def main() -> None:
    """Build the wheels of all tags, or of those of some distributions."""
    folder, names = Path(sys.argv[1]), set(sys.argv[2:])
    for tag in git(ROOT, "tag", "--list").splitlines():
        found = TAG.fullmatch(tag)
        if found is not None and (not names or found[1] in names):
            print(wheel_of(ROOT, tag, folder))


if __name__ == "__main__":
    main()
