"""Test tools/release.py and tools/released.py on small repositories."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("packaging")
from packaging.version import Version

ROOT = Path(__file__).parents[3]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


release = tool("release")
released = tool("released")


def git(root, *arguments):
    options = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    return subprocess.run(
        ["git", *options, "-C", str(root), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def write(root, package, needs=(), version="0.1.0", backend="hatchling.build", home="https://example.org"):
    folder = root / "packages" / package
    source = folder / "src" / package.replace("-", "_")
    source.mkdir(parents=True)
    (source / "__init__.py").write_text(f'"""A package."""\n\n__version__ = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(f"# Changes\n\n## {version} (unreleased)\n\n- It is there.\n")
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n\n'
        f'[project]\nname = "candelabra-{package}"\ndynamic = ["version"]\ndependencies = {list(needs)}\n\n'
        f'[project.urls]\nHomepage = "{home}"\n\n'
        f'[tool.hatch.version]\npath = "src/{package.replace("-", "_")}/__init__.py"\n'
    )


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for variable in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{variable}_NAME", "Test")
        monkeypatch.setenv(f"{variable}_EMAIL", "test@example.org")
    git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, "tensor-core")
    write(tmp_path, "nn", ["candelabra-tensor-core>=0.1,<0.2"])
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Begin")
    return tmp_path


def fine():
    return None


def test_a_release_is_committed_tagged_and_says_what_to_upload(repository):
    tested = []
    lines = release.make(repository, "nn", Version("0.1.1"), lambda: tested.append(True))
    assert tested == [True]
    assert release.current_version(repository, "nn") == Version("0.1.1")
    assert "## 0.1.1\n" not in git(repository, "show", "HEAD~1:packages/nn/CHANGELOG.md")
    assert git(repository, "log", "-1", "--format=%s") == "nn 0.1.1"
    assert git(repository, "tag", "--list") == "candelabra-nn-v0.1.1"
    assert git(repository, "status", "--porcelain") == ""
    assert lines[0] == "git push origin main candelabra-nn-v0.1.1"
    assert (
        lines[-1] == "python -m twine upload dist/candelabra_nn-0.1.1-py3-none-any.whl dist/candelabra_nn-0.1.1.tar.gz"
    )
    assert release.released(repository, "candelabra-nn") == [Version("0.1.1")]


@pytest.fixture(autouse=True)
def changelog_of_the_next_version(request):
    if "repository" in request.fixturenames:
        root = request.getfixturevalue("repository")
        path = root / "packages" / "nn" / "CHANGELOG.md"
        path.write_text("# Changes\n\n## Unreleased\n\n- More.\n\n## 0.1.0\n\n- It is there.\n")
        git(root, "commit", "-qam", "More")


def test_the_section_is_titled(repository):
    release.make(repository, "nn", Version("0.1.1"), fine)
    text = (repository / "packages" / "nn" / "CHANGELOG.md").read_text()
    assert text == "# Changes\n\n## 0.1.1\n\n- More.\n\n## 0.1.0\n\n- It is there.\n"


def test_failing_tests_leave_the_tree_as_it_was(repository):
    def fail():
        raise subprocess.CalledProcessError(1, ["nox"])

    with pytest.raises(subprocess.CalledProcessError):
        release.make(repository, "nn", Version("0.1.1"), fail)
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "tag", "--list") == ""
    assert release.current_version(repository, "nn") == Version("0.1.0")


def refusal(root, package="nn", version="0.1.1"):
    with pytest.raises(release.RefusedError) as raised:
        release.make(root, package, Version(version), lambda: pytest.fail("nothing is tested"))
    return str(raised.value)


def test_changes_are_refused(repository):
    (repository / "new.txt").write_text("new")
    assert "changes that are not committed:\n?? new.txt" in refusal(repository)


def test_another_branch_is_refused(repository):
    git(repository, "switch", "-q", "-c", "mine")
    assert "the branch is mine, not main" in refusal(repository)


def test_versions_only_grow(repository):
    assert "0.0.9 is older than 0.1.0" in refusal(repository, version="0.0.9")
    git(repository, "tag", "candelabra-nn-v0.1.5")
    assert "the tag candelabra-nn-v0.1.5 is there already" in refusal(repository, version="0.1.5")
    assert "0.1.4 is older than 0.1.5, which is released" in refusal(repository, version="0.1.4")


def test_a_version_that_others_exclude_is_refused(repository):
    text = refusal(repository, "tensor-core", "0.2.0")
    assert "nn (candelabra-tensor-core>=0.1,<0.2)" in text
    assert "title it '0.2.0 (unreleased)'" in text  # all faults at once


def test_a_changelog_without_an_entry_is_refused(repository):
    with pytest.raises(release.RefusedError, match="has no entry"):
        release.titled("# Changes\n\n## Unreleased\n\n## 0.1.0\n\n- It is there.\n", Version("0.1.1"))
    with pytest.raises(release.RefusedError, match="first section of the changelog is '0.1.0'"):
        release.titled("# Changes\n\n## 0.1.0\n\n- It is there.\n", Version("0.1.1"))
    with pytest.raises(release.RefusedError, match="has no section"):
        release.titled("# Changes\n", Version("0.1.1"))


def test_a_project_without_an_address_is_refused(repository):
    write(repository, "optim", home="https://candelabra.example")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "optim")
    assert "set one by tools/set_address.py" in refusal(repository, "optim", "0.1.0")


def test_a_package_that_is_none_is_refused(repository):
    with pytest.raises(release.RefusedError, match="no package 'nm'; there are nn, tensor-core"):
        release.check(repository, "nm", Version("0.1.1"))


def test_compiled_wheels_come_from_the_workflow(repository):
    write(repository, "backend-cpu", backend="scikit_build_core.build")
    lines = release.uploads(repository, "backend-cpu", Version("0.1.1"))
    assert any("gh run download --name wheels --dir" in line for line in lines)
    assert "dist/upload/backend-cpu/candelabra_backend_cpu-0.1.1-*.whl" in lines[-1]


def test_wheels_of_tags_are_built_from_their_sources(repository, monkeypatch, tmp_path_factory):
    release.make(repository, "nn", Version("0.1.1"), fine)
    (repository / "packages" / "nn" / "src" / "nn" / "__init__.py").write_text('__version__ = "9"\n')
    folder = tmp_path_factory.mktemp("wheels")
    run = subprocess.run

    def build(command, **options):
        if "wheel" not in command:
            return run(command, **options)
        source = Path(command[-1])
        assert '__version__ = "0.1.1"' in (source / "src" / "nn" / "__init__.py").read_text()
        (folder / "candelabra_nn-0.1.1-py3-none-any.whl").write_bytes(b"")
        return None

    monkeypatch.setattr(released.subprocess, "run", build)
    wheel = released.wheel_of(repository, "candelabra-nn-v0.1.1", folder)
    assert wheel == released.wheel_of(repository, "candelabra-nn-v0.1.1", folder)
    assert wheel.name == "candelabra_nn-0.1.1-py3-none-any.whl"
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    with pytest.raises(ValueError, match="no tag of a release"):
        released.wheel_of(repository, "v1", folder)


def test_the_repository_itself_is_refused_for_its_address_at_most():
    for path in sorted(ROOT.glob("packages/*/pyproject.toml")):
        package = path.parent.name
        assert release.excluded_by(ROOT, release.project(ROOT, package)["project"]["name"], Version("0.1.0")) == []
        assert release.current_version(ROOT, package) == Version("0.1.0")
