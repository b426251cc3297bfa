"""Test that tools/lint_imports.py gives the linter one package with the sources of all
distributions.
"""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "lint_imports.py"


def _tool():
    specification = importlib.util.spec_from_file_location("lint_imports", TOOL)
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    return tool


def test_sources_are_merged(tmp_path):
    _tool().merge_sources(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["candelabra"]
    for module in ("catalogue/declaration", "autograd/engine", "nn/modules/module", "torch/__init__"):
        assert (tmp_path / "candelabra" / f"{module}.py").is_file()


def test_layers_are_modules(tmp_path):
    """The layers of a contract exist; the linter itself only runs in ``nox -s lint``."""
    tool = _tool()
    tool.merge_sources(tmp_path)
    contracts = tomllib.loads(tool.CONTRACTS.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layered = [contract for contract in contracts if contract["type"] == "layers"]
    assert layered
    for contract in layered:
        for container in contract.get("containers", [""]):
            for layer in " | ".join(contract["layers"]).split(" | "):
                path = tmp_path.joinpath(*f"{container}.{layer}".strip(".").split("."))
                assert path.is_dir() or path.with_suffix(".py").is_file(), layer
