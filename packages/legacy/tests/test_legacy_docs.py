"""The guide and the README: their programs run, and the guide lists every class."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from candelabra.legacy import nn, optim

ROOT = Path(__file__).parents[3]
GUIDE, README = ROOT / "docs" / "porting" / "legacy.md", ROOT / "packages" / "legacy" / "README.md"


@pytest.mark.parametrize("page", [GUIDE, README], ids=["guide", "README"])
def test_programs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
    assert len(blocks) == (4 if page is GUIDE else 1) and "feval" in names


def test_the_guide_lists_every_class() -> None:
    text = GUIDE.read_text()
    section = text[text.index("| family | classes |") : text.index("`RReLU` works")]
    listed = [name for row in section.splitlines()[2:] if row for name in row.split("|")[2].split()]
    assert sorted(listed) == sorted(nn.__all__)
    assert all(name in text for name in optim.__all__)
