"""Test that tools/lint_import_order.py finds modules that are imported before their package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "lint_import_order.py"


@pytest.fixture(scope="module")
def tool():
    specification = importlib.util.spec_from_file_location("lint_import_order", TOOL)
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    sys.modules["lint_import_order"] = tool
    specification.loader.exec_module(tool)
    return tool


def faults(tool, folder, files):
    """Return what the lint says of a repository with these files besides two packages."""
    given = {
        "__init__.py": "",
        "nn/__init__.py": "from .layers import Layer\n",
        "nn/layers.py": "class Layer: pass\n",
        "nn/rare.py": "",
        "optim/__init__.py": "from . import steps\n",
        "optim/steps.py": "",
        **files,
    }
    for name, text in given.items():
        file = folder / "packages" / "all" / "src" / "candelabra" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [fault.partition("src/candelabra/")[2] for fault in tool.faults(folder)]


WRONG = "candelabra.nn.layers is imported before candelabra.nn, which imports it"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from candelabra.nn.layers import Layer\n", 1),
        ("import candelabra.nn.layers\n", 1),
        ("import os\nfrom ..nn.layers import Layer\n", 2),
        ("import importlib\nimportlib.import_module('candelabra.nn.layers')\n", 2),
        ("def f():\n    from candelabra.nn.layers import Layer\n", 2),
        # Another function may never run.
        ("def f():\n    import candelabra.nn\ndef g():\n    import candelabra.nn.layers\n", 4),
        ("def f():\n    import candelabra.nn.layers\nclass A:\n    def g(self):\n        pass\n", 2),
        ("try:\n    import candelabra.nn.layers\nexcept ImportError:\n    pass\n", 2),
    ],
)
def test_found(tool, tmp_path, text, line):
    assert faults(tool, tmp_path, {"optim/steps.py": text}) == [f"optim/steps.py:{line}: {WRONG}"]


@pytest.mark.parametrize(
    "text",
    [
        "from candelabra import nn\nfrom candelabra.nn.layers import Layer\n",
        "import candelabra.nn\nimport candelabra.nn.layers\n",
        "import candelabra.nn\ndef f():\n    import candelabra.nn.layers\n",
        "def f():\n    from .. import nn\n    def g():\n        import candelabra.nn.layers\n",
        # The package does not import it.
        "import candelabra.nn.rare\nimport candelabra.nn.layers\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from candelabra.nn.layers import Layer\n",
        "from candelabra.nn import Layer\n",
        "from candelabra.optim import steps\n",
    ],
)
def test_accepted(tool, tmp_path, text):
    assert faults(tool, tmp_path, {"optim/steps.py": text}) == []


def test_what_another_module_imports_counts(tool, tmp_path):
    files = {
        "other/__init__.py": "from candelabra import optim\nimport candelabra.nn.layers\n",
        "optim/steps.py": "from .. import nn\n",
    }
    assert faults(tool, tmp_path, files) == []


def test_this_repository_has_none(tool):
    assert tool.faults() == []
