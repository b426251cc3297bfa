"""Test that distributions that do not work together are refused on import."""

import subprocess
import sys

import pytest

from candelabra import version as versions


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(versions, "_imported", {versions.CORE: "0.2.0"})
    monkeypatch.setattr(versions, "_needs", [])


def test_an_old_package_is_refused_by_a_newer_core():
    with pytest.raises(
        versions.VersionError,
        match=r"^candelabra-nn 0\.1\.3 needs candelabra-tensor-core>=0\.1,<0\.2, but candelabra-tensor-core 0\.2\.0 is installed: "
        r"pip install --upgrade candelabra-nn$",
    ):
        versions.register("candelabra-nn", "0.1.3", "candelabra-tensor-core>=0.1,<0.2")


def test_an_old_core_is_refused_by_a_newer_package():
    with pytest.raises(
        versions.VersionError, match=r"is installed: pip install --upgrade 'candelabra-tensor-core>=0\.3,<0\.4'$"
    ):
        versions.register("candelabra-nn", "0.3.0", "candelabra-tensor-core>=0.3,<0.4")


def test_packages_are_compared_in_either_order():
    versions.register("candelabra-nn", "0.2.0", "candelabra-autograd>=0.2,<0.3")
    with pytest.raises(
        versions.VersionError, match=r"candelabra-nn 0\.2\.0 needs candelabra-autograd>=0\.2,<0\.3, but"
    ):
        versions.register("candelabra-autograd", "0.1.9", "candelabra-tensor-core>=0.1,<0.3")


def test_versions_in_range_pass():
    versions.register("candelabra-autograd", "0.1.9", "candelabra-tensor-core>=0.1,<0.3")
    versions.register("candelabra-nn", "1.0", "candelabra-autograd>=0.1.2,<0.2")
    assert versions._imported["candelabra-nn"] == "1.0"


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.2", (0, 2, 0)), ("0.2.0rc1", (0, 2, 0)), ("0.10.3.dev4+gab", (0, 10, 3)), ("1.2.3.4", (1, 2, 3, 4))],
)
def test_numbers_of_versions(version, numbers):
    assert versions.release(version) == numbers


def test_parts_of_requirements():
    assert versions.parts("candelabra-nn") == ("candelabra-nn", "0", str(2**31))
    assert versions.parts("candelabra-nn<0.2,>=0.1") == versions.parts("candelabra-nn>=0.1,<0.2")


def test_an_import_is_refused(tmp_path):
    package = tmp_path / "layers.py"
    package.write_text(
        "from candelabra.version import register\nregister('layers', '0.1', 'candelabra-tensor-core>=7,<8')\n"
    )
    done = subprocess.run([sys.executable, "-c", "import layers"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "candelabra.version.VersionError: layers 0.1 needs candelabra-tensor-core>=7,<8, but"
    )
