"""Test that tools/lint_layout.py reports full folders, wide comments and arguments by index."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "lint_layout.py"


def _broken(name: str, text: str, copies: int = 1) -> list[str]:
    specification = importlib.util.spec_from_file_location("lint_layout", TOOL)
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    path = Path(name)
    files = [path.with_stem(f"{path.stem}{number}" if number else path.stem) for number in range(copies)]
    return tool.broken_rules(files, dict.fromkeys(files, text))


def test_a_full_folder():
    assert _broken("packages/nn/src/a.py", "", 30) == []
    (line,) = _broken("packages/nn/src/a.py", "", 31)
    assert line.startswith("packages/nn/src: 31 files")


def test_wide_comments():
    words = "word " * 24
    for name, mark in (("packages/a/src/a.cpp", "//"), ("tests/a.py", "#")):
        (line,) = _broken(name, f"x = 1;\n{mark} {words}\n")
        assert line.startswith(f"{name}:2: a comment of")
        assert _broken(name, f"{mark}   {words}\n") == []  # code and tables are exempt
        assert _broken(name, f"{mark} short\n") == []


def test_arguments_by_number():
    (line,) = _broken("packages/a/src/a.cpp", "const bool amsgrad = call.boolean(10);\n")
    assert "call.boolean(10)" in line
    assert _broken("packages/a/src/a.cpp", "const bool amsgrad = args.amsgrad;\n") == []
    assert _broken("packages/a/src/a.cpp", "const cb_tensor& x = call.tensor(at::self);\n") == []
