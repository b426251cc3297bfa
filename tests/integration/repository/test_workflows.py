"""Test that CI's files and CONTRIBUTING.md name sessions, packages and tools that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CALLERS = [*WORKFLOWS, ROOT / ".ci" / "run", ROOT / "CONTRIBUTING.md", ROOT / "docker" / "README.md"]


def sessions() -> set[str]:
    """Return the names of the sessions, without running nox."""
    found = set()
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body:
        for decorator in getattr(node, "decorator_list", []):
            named = getattr(decorator, "keywords", [])
            names = [keyword.value.value for keyword in named if keyword.arg == "name"]
            if "session" in ast.unparse(decorator):
                found.add(names[0] if names else node.name)
    return found | {f"tests-{path.parent.name}" for path in ROOT.glob("packages/*/tests")}


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.name)
def test_sessions_exist(path):
    called = re.findall(r"nox -s ((?:[a-z][\w-]* ?)+)", path.read_text())
    names = {name for words in called for name in words.split()}
    assert names
    # A sentence may go on after a command in code, as `nox -s lint` and what follows.
    assert {words.split()[0] for words in called} <= sessions()
    if path in WORKFLOWS or path.name == "run":
        assert names <= sessions()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_workflows_name_is_there(path):
    text = path.read_text()
    for named in re.findall(r"(?<![\w/])((?:tools|packages|docker|\.ci)/[\w./-]+)", text):
        assert (ROOT / named.rstrip(".")).exists(), named
    matrix = re.search(r"package: \[([\w, -]+)\]", text)
    if matrix is not None:
        compiled = {path.parent.name for path in ROOT.glob("packages/*/CMakeLists.txt")}
        # The core has a job of its own, and backend-cuda needs NVIDIA's compiler.
        assert {name.strip() for name in matrix[1].split(",")} == compiled - {"tensor-core", "backend-cuda"}


def test_steps_have_limits_and_fixed_actions():
    for path in WORKFLOWS:
        text = path.read_text()
        jobs = len(re.findall(r"^    runs-on:", text, re.M))
        assert jobs == len(re.findall(r"^    timeout-minutes: \d+$", text, re.M)) > 0
        assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in re.findall(r"uses: (\S+)", text))
        assert re.search(r"^permissions:\n  contents: read$", text, re.M)
