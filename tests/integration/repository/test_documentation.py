"""Test that the generated pages of the documentation list every operator."""

import subprocess
import sys
from pathlib import Path

import pytest

from candelabra.catalogue import FACTS, OPERATORS

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.mark.parametrize("tool", ["make_coverage.py", "make_kernel_contract.py"])
def test_a_page_holds_every_operator(tool: str, tmp_path: Path):
    page = tmp_path / "page.md"
    made = subprocess.run([sys.executable, str(TOOLS / tool), str(page)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    text = page.read_text()
    with_kernels = [name for name in OPERATORS if FACTS[name].sees]
    assert len(with_kernels) > 300
    assert [name for name in with_kernels if name not in text] == []
