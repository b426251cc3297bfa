"""Run the Python code of the guides, block by block."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    "page", ["trainer", "porting/coming_from_pytorch", "compile", "export", "files", "fx", "gpu", "vision_ops"]
)
def test_guide(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, "guide.py"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
