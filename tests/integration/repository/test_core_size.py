"""Test that the README says what the tensor core weighs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "core_size.py"


@pytest.fixture(scope="module")
def core_size():
    spec = importlib.util.spec_from_file_location("core_size", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_the_lines(core_size):
    paragraph = next(text for text in (ROOT / "README.md").read_text().split("\n\n") if "core_size.py" in text)
    said = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+)\s+lines", paragraph)]
    counted = core_size.source_lines()
    order = ("Python", "C++", "C and C++ of the headers for backends", "Python of the conformance suite")
    assert said == pytest.approx([counted[part] for part in order], rel=0.05)


def test_sizes_of_a_wheel(tmp_path):
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(3_000_000))
    done = subprocess.run([sys.executable, str(TOOL), str(wheel)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["0.0", "MB", "some.whl,", "3.0", "MB", "installed"]
