"""Test tools/new_operator.py on a copy of the packages."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import candelabra

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("new_operator", ROOT / "tools" / "new_operator.py")
assert spec is not None
assert spec.loader is not None
new_operator = importlib.util.module_from_spec(spec)
spec.loader.exec_module(new_operator)

PROGRAM = """
import candelabra
from candelabra.testing.conformance import run
x = candelabra.tensor([1.0, -2.0], requires_grad=True)
y = candelabra.softsquare(x)
assert y.data_ptr() != x.data_ptr() and y.tolist() == [1, -2]
x.softsquare().sum().backward()
assert x.grad.tolist() == [1, 1]
(outcome,) = run("cpu", ["softsquare"])
assert outcome.passed > 10 and not outcome.failures, outcome
assert candelabra.softsquare.__doc__.startswith("Return a copy.")
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of what the tool writes to, with the package that is installed."""
    installed = Path(candelabra.__file__).parent
    shutil.copytree(installed, tmp_path / new_operator.CORE, ignore=shutil.ignore_patterns("__pycache__", "include"))
    for name in (new_operator.SAMPLES, new_operator.CHANGELOG):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("family", ["elementwise", "linalg"])
def test_what_it_writes_works(copied, family, capsys):
    assert new_operator.main(["softsquare", family], copied) == 0
    assert "nox -s tests-tensor-core tests-autograd -- -k softsquare" in capsys.readouterr().out
    path = [str((copied / new_operator.CORE).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, cwd=copied)
    samples = (copied / new_operator.SAMPLES).read_text()
    assert samples.endswith('    "softsquare": _one(),\n}  # fmt: skip\n')
    assert "- The operator `softsquare`.\n" in (copied / new_operator.CHANGELOG).read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["softplus", "elementwise"], "elementwise.py has 'softplus' already"),
        (["SoftSquare", "elementwise"], "'SoftSquare' is no name of an operator"),
        (["softsquare", "activations"], "there is no family 'activations' with decompositions; there are "),
    ],
)
def test_what_it_refuses(arguments, message, capsys):
    before = (ROOT / new_operator.SAMPLES).read_text()
    assert new_operator.main(arguments, ROOT) == 1
    assert message in capsys.readouterr().err
    assert (ROOT / new_operator.SAMPLES).read_text() == before


def test_imports_are_added_in_order():
    text = "import os\nfrom .declaration import (\n    HIDDEN,\n    operator,\n)\nx = 1\n"
    wanted = "import os\nfrom .declaration import COMPOSITE, HIDDEN, document, operator\nx = 1\n"
    assert new_operator.with_imports(text, ".declaration", "COMPOSITE", "document") == wanted
    assert new_operator.with_imports(wanted, ".declaration", "HIDDEN") == wanted


def test_a_line_goes_to_the_end_of_the_first_section():
    changelog = "# Changes\n\n## 0.2.0\n\n- One.\n\n## 0.1.0\n\n- Old.\n"
    assert new_operator.first_section_with(changelog, "- Two.\n") == changelog.replace("- One.\n", "- One.\n- Two.\n")
