"""The names of PyTorch's tests that pass on PyTorch, a file of plain text for each file of tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"


def place(file: str) -> Path:
    """Return where the names of a file are."""
    return FOLDER / f"{file}.txt"


def load(file: str) -> set[str]:
    """Return the names that pass on PyTorch.

    A line has how many characters a name shares with the one before, and the others.
    """
    names, before = set(), ""
    for line in place(file).read_text().splitlines():
        shared, _, rest = line.partition(" ")
        before = before[: int(shared)] + rest
        names.add(before)
    return names


def store(file: str, names: Iterable[str]) -> None:
    """Write the names that pass on PyTorch."""
    lines, before = [], ""
    for name in sorted(names):
        shared = next(
            (i for i, pair in enumerate(zip(before, name, strict=False)) if pair[0] != pair[1]),
            min(len(before), len(name)),
        )
        lines.append(f"{shared} {name[shared:]}\n")
        before = name
    FOLDER.mkdir(exist_ok=True)
    place(file).write_text("".join(lines))
