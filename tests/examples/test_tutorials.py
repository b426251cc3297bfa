"""The tutorials and the quickstart run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "start" / "quickstart.md", *sorted((DOCS / "tutorials").glob("*.md"))]
CELL = re.compile(r"```\{code-cell\} ipython3\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial(page: Path, tmp_path: Path) -> None:
    cells = CELL.findall(page.read_text(encoding="utf-8"))
    assert cells, f"{page} has no code"
    program = tmp_path / "tutorial.py"
    program.write_text("\n".join(cells), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr


def test_the_site_lists_every_tutorial() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"\n{page.relative_to(DOCS).with_suffix('')}\n" in listed
