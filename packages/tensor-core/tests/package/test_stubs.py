"""The type stubs are what the catalogue and the composites give."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import candelabra

ROOT = Path(__file__).parents[4]
STUBS = ROOT / "packages" / "tensor-core" / "python" / "candelabra"


@pytest.mark.skipif(not (ROOT / "tools" / "make_stubs.py").exists(), reason="not run from the source tree")
def test_stubs_are_up_to_date():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_stubs.py"), "--check"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not STUBS.exists(), reason="not run from the source tree")
def test_stubs_name_what_there_is():
    tree = ast.parse((STUBS / "_C.pyi").read_text())
    tensor = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    described = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    missing = [name for name in described - {"__getattr__"} if not hasattr(candelabra.Tensor, name)]
    assert missing == []
    functions = {
        node.name for node in ast.parse((STUBS / "__init__.pyi").read_text()).body if isinstance(node, ast.FunctionDef)
    }
    assert [name for name in functions if not hasattr(candelabra, name)] == []
    assert {"add", "einsum", "where", "max", "zeros", "softmax"} <= functions
