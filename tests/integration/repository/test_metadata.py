"""Test what the packages say about themselves: one form, one version, the same needs everywhere."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECTS = {
    path.parent.name: tomllib.loads(path.read_text()) for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
PURE_OR_NOT = pytest.mark.parametrize("package", PROJECTS)


@PURE_OR_NOT
def test_one_form(package):
    project = PROJECTS[package]["project"]
    assert project["requires-python"] == ">=3.11"
    assert project["license"].startswith("BSD-3-Clause")
    assert "LICENSE" in project["license-files"]
    assert project["authors"] == [{"name": "The Candelabra developers"}]
    assert project["keywords"]
    assert set(project["urls"]) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert project["urls"]["Source"].endswith(f"packages/{package}")
    for classifier in (
        "Development Status :: 3 - Alpha",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.14",
    ):
        assert classifier in project["classifiers"]


def test_one_address():
    assert len({project["project"]["urls"]["Homepage"] for project in PROJECTS.values()}) == 1


@PURE_OR_NOT
def test_one_source_of_the_version(package):
    settings = PROJECTS[package]
    if package == "candelabra":  # has no module that could have it
        assert settings["project"]["version"]
        return
    assert "version" in settings["project"]["dynamic"]
    tools = settings["tool"]
    path = (
        tools["hatch"]["version"]["path"]
        if "version" in tools["hatch"]
        else tools["scikit-build"]["metadata"]["version"]["input"]
    )
    assert re.search(r'^__version__ = "[\d.]+"$', (ROOT / "packages" / package / path).read_text(), re.M)


@PURE_OR_NOT
def test_links_of_the_readme_are_absolute_in_the_wheel(package):
    settings = PROJECTS[package]
    text = (ROOT / "packages" / package / "README.md").read_text()
    for rule in settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    source = settings["project"]["urls"]["Issues"].removesuffix("/issues")
    for link in links:
        if link.startswith(f"{source}/blob/main/"):
            place = link.removeprefix(f"{source}/blob/main/").partition("#")[0]
            assert (ROOT / place).exists(), f"{link} is not there"


def registered(package):
    """Return the requirements that a package states on import, or None."""
    for path in sorted((ROOT / "packages" / package).glob("*/candelabra/*/__init__.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "register" and len(node.args) > 2:
                name, version, *needs = node.args
                assert ast.literal_eval(name) == f"candelabra-{package}"
                assert ast.unparse(version) == "__version__"
                return {ast.literal_eval(need) for need in needs}
    return None


#: Packages whose modules are no subpackages of candelabra, or that only depend on others.
NOT_CHECKED = {"tensor-core", "backend-cpu", "backend-cuda", "collectives-mpi", "runner", "candelabra"}


@pytest.mark.parametrize("package", sorted(set(PROJECTS) - NOT_CHECKED))
def test_imports_check_what_the_metadata_says(package):
    project = PROJECTS[package]["project"]
    extras = {
        name: needs for name, needs in project.get("optional-dependencies", {}).items() if name not in ("test", "mpi")
    }
    needs = {need for need in [*project["dependencies"], *chain(*extras.values())] if need.startswith("candelabra-")}
    # The ABI of a backend is checked when it is loaded.
    assert registered(package) == {need for need in needs if "backend" not in need}


def test_the_meta_package_lets_each_package_be_released_alone():
    project = PROJECTS["candelabra"]["project"]
    needs = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert all(need.endswith(">=0.1,<1") for need in needs)


def test_what_the_wheel_of_the_cpu_holds_has_its_licence():
    expression = PROJECTS["backend-cpu"]["project"]["license"]
    for part in (
        "Apache-2.0",
        "LicenseRef-Intel-Simplified-Software-License",
        "GPL-3.0-or-later WITH GCC-exception-3.1",
    ):
        assert part in expression
    text = (ROOT / "packages" / "backend-cpu" / "licenses" / "LICENSE.libgomp.txt").read_text()
    assert "GCC RUNTIME LIBRARY EXCEPTION" in text
    assert "GNU GENERAL PUBLIC LICENSE" in text


def test_the_address_is_set_everywhere():
    sys.path.insert(0, str(ROOT / "tools"))
    import set_address

    for package in PROJECTS:
        path = ROOT / "packages" / package / "pyproject.toml"
        text = set_address.replaced(path.read_text(), "https://home.test", "https://source.test/x")
        assert ".example" not in text
        urls = tomllib.loads(text)["project"]["urls"]
        assert urls["Homepage"] == "https://home.test"
        assert urls["Source"] == f"https://source.test/x/tree/main/packages/{package}"
        assert set_address.replaced(text, *addresses(path)) == path.read_text()


def addresses(path):
    urls = tomllib.loads(path.read_text())["project"]["urls"]
    return urls["Homepage"], urls["Issues"].removesuffix("/issues")


@pytest.fixture
def wheel(tmp_path):
    def make(name):
        path = tmp_path / name / "candelabra_some-0.1.0-py3-none-any.whl"
        path.parent.mkdir()
        metadata = (
            "Metadata-Version: 2.4\nName: candelabra-some\nVersion: 0.1.0\nSummary: Some\nAuthor: Us\n"
            "License-Expression: BSD-3-Clause\nProject-URL: Source, https://source.test\n"
            "Requires-Dist: pluggy>=1.3\nRequires-Dist: numpy; extra == 'test'\n"
        )
        contents = {
            "some/__init__.py": "", "some/run": "#!", "candelabra_some-0.1.0.dist-info/METADATA": metadata,
            "candelabra_some-0.1.0.dist-info/RECORD": "", "candelabra_some-0.1.0.dist-info/sboms/bundled.txt": "libgomp 12.2.0\n",
        }  # fmt: skip
        with zipfile.ZipFile(path, "w") as archive:
            for place in sorted(contents, reverse=name == "second"):
                item = zipfile.ZipInfo(place, (2001 if name == "second" else 2002, 1, 1, 0, 0, 0))
                item.external_attr = (0o700 if place == "some/run" else 0o600) << 16
                archive.writestr(item, contents[place])
        return path

    return make


def test_finished_wheels_have_a_bill_of_materials_and_the_same_bits(wheel, monkeypatch):
    pytest.importorskip("cyclonedx")
    import json

    sys.path.insert(0, str(ROOT / "tools"))
    import finish_wheels

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second = wheel("first"), wheel("second")
    digest = finish_wheels.finish(first)
    assert finish_wheels.finish(second) == digest
    assert finish_wheels.finish(second) == digest  # a finished one stays as it is
    with zipfile.ZipFile(first) as archive:
        bill = json.loads(archive.read("candelabra_some-0.1.0.dist-info/sboms/candelabra_some.cdx.json"))
        record = archive.read("candelabra_some-0.1.0.dist-info/RECORD").decode().splitlines()
        modes = {item.filename: item.external_attr >> 16 & 0o777 for item in archive.infolist()}
        assert archive.testzip() is None
        assert archive.namelist()[-1] == "candelabra_some-0.1.0.dist-info/RECORD"
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/candelabra-some@0.1.0"
    assert bill["metadata"]["timestamp"].startswith("2023-11-14")
    assert [part["name"] for part in bill["components"]] == ["libgomp", "pluggy"]
    assert len(record) == len(modes)
    assert modes["some/run"] == 0o755
    assert modes["some/__init__.py"] == 0o644


def test_finished_wheels_name_all_licence_files():
    pytest.importorskip("cyclonedx")
    sys.path.insert(0, str(ROOT / "tools"))
    import finish_wheels

    metadata = "Name: some\nLicense-Expression: MIT\nLicense-File: LICENSE\nAuthor: A\n\nLicense-File: text\n"
    named = finish_wheels.with_licenses(metadata, ["LICENSE", "LICENSE.mkl.txt"])
    assert named == metadata.replace("LICENSE\nAuthor", "LICENSE\nLicense-File: LICENSE.mkl.txt\nAuthor")
    assert finish_wheels.with_licenses(named, ["LICENSE", "LICENSE.mkl.txt"]) == named


def test_platform_tags():
    sys.path.insert(0, str(ROOT / "tools"))
    import wheel_tags

    text = "is consistent with the following platform tag: \"manylinux_2_35_x86_64\". libc.so.6 with versions {'GLIBC_2.4', 'GLIBC_2.35'}"
    assert wheel_tags.tag_of(text) == "manylinux_2_35_x86_64"
    assert wheel_tags.newest_symbol(text) == "GLIBC_2.35"
    assert not wheel_tags.fits("manylinux_2_35_x86_64", "manylinux_2_28")
    assert wheel_tags.fits("manylinux_2_17_x86_64", "manylinux_2_28")
    assert not wheel_tags.fits("linux_x86_64", "manylinux_2_28")
    with pytest.raises(ValueError, match="names no tag"):
        wheel_tags.tag_of("nothing")
