"""Check the layout: files per folder, the width of comments, and arguments read by name.

- A folder of ``packages/`` holds at most 30 files, so that its listing can be read.
- A line of comment ends at column 100, but for code and tables in comments.
- Kernels and shape rules read arguments by name, never by a number.

``python tools/lint_layout.py`` prints violations, and returns 1 if there are any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_FILES = 30
#: Folders that may have more files, with the reason.
LARGE_FOLDERS = {
    "packages/distributions/src/candelabra/distributions": "programs import each distribution from its module",
}
WIDTH = 100
CODE = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".c"}
#: A comment on its own line. Further indented text is code or a table, and is exempt.
COMMENT = {".py": re.compile(r"\s*#:? [^\s|]"), **dict.fromkeys(CODE, re.compile(r"\s*// [^\s|]"))}
BY_NUMBER = re.compile(
    r"\bcall\.(boolean|real|integer|tensor|tensors|ints|floats|string|scalar|given|optional_\w+)\(\d"
)


def tracked_files() -> list[Path]:
    """Return the files of the repository, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def broken_rules(files: list[Path], read: dict[Path, str]) -> list[str]:
    """Return a message for each violation."""
    found = []
    for folder, count in sorted(Counter(str(path.parent) for path in files if path.parts[0] == "packages").items()):
        if count > MOST_FILES and folder not in LARGE_FOLDERS:
            found.append(f"{folder}: {count} files; a folder holds at most {MOST_FILES}: find the rooms that are in it")
    for path in files:
        if path.suffix not in COMMENT:
            continue
        for number, line in enumerate(read[path].splitlines(), start=1):
            if (
                len(line) > WIDTH
                and COMMENT[path.suffix].match(line)
                and "http" not in line
                and " " in line.strip()[3:]
            ):
                found.append(f"{path}:{number}: a comment of {len(line)} columns; they end at {WIDTH}")
            if path.suffix in CODE and path.parts[0] == "packages" and BY_NUMBER.search(line):
                found.append(f"{path}:{number}: an argument is read by number: {line.strip()}")
    return found


def main() -> int:
    files = tracked_files()
    read = {path: (ROOT / path).read_text(encoding="utf-8") for path in files if path.suffix in COMMENT}
    found = broken_rules(files, read)
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
