"""Say which platform tags wheels get: ``python tools/wheel_tags.py WHEEL... [--require TAG]``.

Needs auditwheel. A wheel that is built outside of a manylinux image gets the tag of the machine's
C library; those for publication are built by .github/workflows/wheels.yml.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

_TAG = re.compile(r"manylinux_(\d+)_(\d+)")


def newest_symbol(text: str) -> str:
    """Return the newest version of glibc's symbols that auditwheel has found."""
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", text)}
    return "GLIBC_" + ".".join(map(str, max(versions))) if versions else "no symbol of glibc"


def tag_of(text: str) -> str:
    """Return the tag that ``auditwheel show`` finds a wheel consistent with."""
    found = re.search(r'following platform tag:\s+"([^"]+)"', text)
    if found is None:
        raise ValueError(f"auditwheel names no tag: {text.strip()}")
    return found[1]


def fits(tag: str, required: str) -> bool:
    """Return whether a wheel with a tag runs wherever one with the required tag does."""
    has, wants = _TAG.match(tag), _TAG.match(required)
    return has is not None and wants is not None and tuple(map(int, has.groups())) <= tuple(map(int, wants.groups()))


def main() -> int:
    """Print a line for each wheel, and fail if one does not fit."""
    parser = argparse.ArgumentParser(description="Print the platform tags of wheels.")
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--require", help="such as manylinux_2_28")
    given = parser.parse_args()
    status = 0
    for wheel in given.wheels:
        if wheel.name.endswith("-any.whl"):
            print(f"{wheel.name}: any platform")
            continue
        done = subprocess.run(["auditwheel", "show", str(wheel)], capture_output=True, text=True, check=True)
        text = done.stdout.replace("\n", " ")
        tag = tag_of(text)
        print(f"{wheel.name}: {tag}, as it needs {newest_symbol(text)}")
        if given.require and not fits(tag, given.require):
            print(f"  {given.require} is required: build it in that image (.github/workflows/wheels.yml)")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
