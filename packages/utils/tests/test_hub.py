"""Models from folders; nothing is downloaded."""

from __future__ import annotations

import sys

import pytest

from candelabra import hub

HUBCONF = """
from beside import VALUE
dependencies = ["numpy"]
_hidden = len

def net(size=1, *, scale=1):
    "So many values."
    return [VALUE * scale] * size

answer = 42
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    yield tmp_path
    sys.modules.pop("beside", None)


def test_load(folder):
    path = list(sys.path)
    assert hub.list(folder) == ["net"]
    assert hub.help(str(folder), "net") == "So many values."
    assert hub.load(folder, "net", 2, scale=3, source="local") == [21, 21]
    assert sys.path == path


def test_refusals(folder):
    with pytest.raises(RuntimeError, match="'pytorch/vision' would be downloaded and run"):
        hub.load("pytorch/vision", "resnet18")
    with pytest.raises(RuntimeError, match="nothing is downloaded; fetch https"):
        hub.load_state_dict_from_url("https://example.org/model.pt")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "net", source="elsewhere")
    with pytest.raises(RuntimeError, match="Cannot find callable answer in hubconf"):
        hub.load(folder, "answer", source="local")
    with pytest.raises(FileNotFoundError, match=r"no hubconf\.py"):
        hub.list(folder / "absent")
    (folder / "hubconf.py").write_text("dependencies = ['no_such_package_here']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        hub.list(folder)


def test_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_directory", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")
