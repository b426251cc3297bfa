"""Test that type checkers understand programs: the README's, the examples and one of 90 lines.

What users see counts, so both check against what is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(__file__).parent / "typed_program.py"
#: All but the one for Numba, whose decorators change signatures.
EXAMPLES = (
    "digits",
    "text_model",
    "generate_digits",
    "expression_trees",
    "hogwild",
    "train_digits_trainer",
    "cart_pole",
    "train_distributed",
    "train_sharded",
    "train_ray",
    "extensions_cython",
    "extensions_scipy",
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all programs, outside of the repository and its configuration."""
    folder = tmp_path_factory.mktemp("programs")
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    (folder / "readme.py").write_text(code[1])
    (folder / "program.py").write_text(PROGRAM.read_text())
    for name in EXAMPLES:
        (folder / f"{name}.py").write_text((ROOT / "examples" / f"{name}.py").read_text())
    return folder


def test_mypy(programs: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(programs / "cache")]
    result = subprocess.run(
        [*command, "readme.py", "program.py"], cwd=programs, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no issues found in 2 source files" in result.stdout
    # The examples are not written for --strict; of names that are there, none is unknown.
    result = subprocess.run(
        [*command[:3], *command[4:], "--ignore-missing-imports", *(f"{name}.py" for name in EXAMPLES)],
        cwd=programs, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_pyright(programs: Path) -> None:
    pytest.importorskip("pyright")
    files = ["readme.py", "program.py", *(f"{name}.py" for name in EXAMPLES)]
    # By default, hidden folders are excluded, and CI's temporary one is in `.nox`; the types of
    # libraries without annotations are guessed.
    settings = {"include": files, "exclude": [], "useLibraryCodeForTypes": False}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    result = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", "."],
        cwd=programs, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files)
    found = [
        f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']}"
        for d in report["generalDiagnostics"]
        if d["severity"] == "error" and d.get("rule") != "reportMissingImports"
    ]
    assert not found


def test_the_program_runs(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "model.cb")], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
