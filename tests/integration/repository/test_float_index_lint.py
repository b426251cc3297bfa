"""Test that tools/lint_float_index.py reports unchecked conversions and accepts checked ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LINT = Path(__file__).parents[3] / "tools" / "lint_float_index.py"

UNCHECKED = [
    "int f(double x) { return static_cast<int>(x * 2); }",
    "int64_t f(float place) { return static_cast<int64_t>(place); }",
    "auto f(C value, C low) { return static_cast<int32_t>(inside ? (value - low) * per_unit : C(0)); }",
    "auto f(int i) { return static_cast<int64_t>(std::floor(at[i])); }",
    "auto f(int i) { return static_cast<size_t>(0.5 * i); }",
    "const C low = std::floor(place), part = place - low;\nreturn static_cast<int64_t>(part) - 1;",
    "auto n = std::max(1, static_cast<int>(wanted.real()));",
    "auto n = std::lrint(x);",
    "int64_t x = 1;\nvoid f(double x) { g(static_cast<int64_t>(std::min(2 * x, limit))); }",
    "int f(double x) { return static_cast<int>(x); }  // a comment with another text",
]
CHECKED = [
    "int f(double x) { return index_from_float<int>(x * 2, 0, 7); }",
    "size_t f(double x) { return static_cast<size_t>(index_from_float<int64_t>(x, 0, 7)); }",
    "int f(double x) { return static_cast<int>(x); }  // float index: the caller has checked it",
    "// float index: the caller has checked it\nint f(double x) { return static_cast<int>(x); }",
    "double x = 0;\nint f(int64_t x) { return static_cast<int>(x); }",
    "int f(double x) { return static_cast<int>(x > 0); }",
    "int f(double* x) { return static_cast<int>(count_of(x)); }",
    "auto f(double x) { return static_cast<uint64_t>(std::bit_cast<uint64_t>(x)); }",
    "auto f(std::vector<double> x) { return static_cast<int>(x.size() * sizeof(double)); }",
    "float f(int x) { return static_cast<float>(x) * 0.5f; }",
    '// static_cast<int>(0.5 * x)\nconst char* text = "static_cast<int>(0.5 * x)";',
]


def lint(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(LINT), *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("code", UNCHECKED)
def test_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "kernel.cpp").write_text(code)
    done = lint(str(tmp_path / "kernel.cpp"))
    assert done.returncode == 1
    assert "kernel.cpp:" in done.stdout


@pytest.mark.parametrize("code", CHECKED)
def test_passed_over(tmp_path: Path, code: str) -> None:
    (tmp_path / "kernel.cpp").write_text(code)
    done = lint(str(tmp_path / "kernel.cpp"))
    assert done.returncode == 0, done.stdout


def test_sources_pass() -> None:
    done = lint()
    assert done.returncode == 0, done.stdout
