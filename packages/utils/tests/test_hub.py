"""Models from folders, and downloads of files."""

from __future__ import annotations

import hashlib
import stat
import sys
import zipfile

import pytest

import candelabra
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
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "net", source="elsewhere")
    with pytest.raises(RuntimeError, match="Cannot find callable answer in hubconf"):
        hub.load(folder, "answer", source="local")
    with pytest.raises(FileNotFoundError, match=r"no hubconf\.py"):
        hub.list(folder / "absent")
    (folder / "hubconf.py").write_text("dependencies = ['no_such_package_here']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        hub.list(folder)


def test_a_repository_that_is_there_already(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    kept = tmp_path / "home" / "hub" / "owner_name_main"
    kept.mkdir(parents=True)
    for name in ("hubconf.py", "beside.py"):
        (kept / name).write_text((folder / name).read_text())
    assert hub.load("owner/name", "net") == hub.load("owner/name:main", "net") == [7]
    with pytest.raises(RuntimeError, match="would be downloaded"):
        hub.load("owner/name:v2", "net")


def test_downloads(tmp_path, capsys):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"content" * 100_000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8])
    assert target.read_bytes() == source.read_bytes()
    assert capsys.readouterr().err.endswith("100.0%\n")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(source.stat().st_mode)
    target.write_text("older")
    with pytest.raises(RuntimeError, match='invalid hash value .expected "1234"'):
        hub.download_url_to_file(source.as_uri(), target, "1234", progress=False)
    assert target.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


@pytest.mark.parametrize("zipped", [False, True])
def test_state_dicts_are_downloaded_once(monkeypatch, tmp_path, zipped, capsys):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    source = tmp_path / "model.pth"
    candelabra.save({"weight": candelabra.ones(2)}, source, format="pytorch")
    if zipped:
        with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
            archive.write(source, "model.pth")
        source = tmp_path / "model.zip"
    named = source.rename(tmp_path / f"model-{hashlib.sha256(source.read_bytes()).hexdigest()[:8]}{source.suffix}")
    for _ in range(2):
        assert hub.load_state_dict_from_url(named.as_uri(), check_hash=True, progress=False)["weight"].tolist() == [
            1,
            1,
        ]
        named.unlink(missing_ok=True)
    assert capsys.readouterr().out.count("Downloading") == 1
    assert (tmp_path / "home" / "hub" / "checkpoints" / named.name).exists()


def test_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")
    hub.set_dir(None)
