"""Follow docs/backend_guide.md, command by command, and build what ``python -m candelabra.backends
new`` writes in each language: in fresh environments, with wheels from a folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "backend_guide.md"
#: Candelabra's wheels: those of the nox session, or of the last ``nox -s wheels``.
WHEELS = Path(os.environ.get("CANDELABRA_WHEELS", ROOT / "dist"))
CORE = next(iter(sorted(WHEELS.glob("candelabra_tensor_core-*.whl"))), None)

pytestmark = pytest.mark.skipif(CORE is None, reason=f"no wheel of tensor-core in {WHEELS}: nox -s tests-examples")

INSERTION = re.compile(r'insert into (\S+) (before|after) "(.*)"')
PART = re.compile(r"<!-- (?P<place>insert .*?) -->|^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def environment() -> dict[str, str]:
    """Return the variables of a process that finds Candelabra's wheels, and nothing that is
    installed.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PIP_FIND_LINKS": str(WHEELS), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(script: str, folder: Path) -> str:
    """Run a script of bash that ends at its first error, and return what it prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-8000:]}"
    return done.stdout


def inserted(code: str, name: str, side: str, anchor: str, source: str) -> str:
    """Return commands that insert code into a file of the distribution, at a line with the
    anchor.
    """
    program = (
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]); lines = p.read_text().splitlines(True); "
        "(i,) = [i for i, line in enumerate(lines) if sys.argv[3] in line]; "
        "lines.insert(i + (sys.argv[2] == 'after'), sys.argv[4]); p.write_text(''.join(lines))"
    )
    return f"python - {name} {side} '{anchor}' '{code}' <<'{source}'\n{program}\n{source}\n"


def commands() -> str:
    """Return the commands of the page, with its listings inserted where the page says."""
    script, place = "", None
    for part in PART.finditer(PAGE.read_text()):
        if part["place"]:
            place = INSERTION.fullmatch(part["place"])
            assert place, part["place"]
        elif part["language"] == "c":
            assert place, f"the page does not say where this goes: {part['text']}"
            script += inserted(part["text"], *place.groups(), "END_OF_PROGRAM")
            place = None
        else:
            assert part["language"] == "bash", part["language"]
            script += part["text"]
    return script


def test_the_guide_ends_with_a_wheel(tmp_path: Path) -> None:
    out = run(commands().replace("python3 -m venv", f"{sys.executable} -m venv"), tmp_path)
    assert "tensor([ 6., 10., 14.]" in out.replace("tensor([ 6, 10, 14]", "tensor([ 6., 10., 14.]")
    assert "training on mydevice:0" in out
    assert "1 operators right, 0 wrong" in out
    assert re.search(r"speed with tensors of .*\n +copy ", out)
    assert "tensor([1., 1., 1.], device='mydevice:0')" in out
    (wheel,) = (tmp_path / "my-device" / "dist").glob("my_device-0.1.0-py3-none-*.whl")
    assert any(name.endswith("libmydevice.so") for name in zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def outsider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a fresh environment, ``.venv``, that has Candelabra's wheels."""
    folder = tmp_path_factory.mktemp("outsider")
    run(f"{sys.executable} -m venv .venv; .venv/bin/pip install -q candelabra-tensor-core", folder)
    return folder


@pytest.mark.parametrize("language", ["cpp", "python"])
def test_new(outsider: Path, language: str) -> None:
    """What the other languages' templates write builds, passes its tests and reaches the tier."""
    script = f"""
        . .venv/bin/activate
        python -m candelabra.backends new Some_{language} --{language}
        pip install -q './Some_{language}[test]'
        cd Some_{language}
        python -m pytest -q
        python -m candelabra.backends --verify some{language} --tier required
        pip wheel -q --no-deps -w dist .
    """
    out = run(script, outsider)
    assert "tiers: required" in out
    assert list((outsider / f"Some_{language}" / "dist").glob(f"some_{language}-0.1.0-py3-none-*.whl"))


def test_the_wheel_has_templates_and_pages() -> None:
    assert CORE is not None
    names = set(zipfile.ZipFile(CORE).namelist())
    templates = ROOT / "packages" / "tensor-core" / "python" / "candelabra" / "backends" / "templates"
    expected = {
        f"candelabra/backends/templates/{path.relative_to(templates).as_posix()}"
        for path in templates.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert len(expected) > 25
    assert expected <= names
    for page in ("backend_guide.md", "backends.md", "kernel-contract.md", "random-numbers.md"):
        assert f"candelabra/docs/{page}" in names
    assert "candelabra/include/candelabra/positions.h" in names


def test_an_outsider_finds_the_pages(outsider: Path) -> None:
    folder = Path(run(".venv/bin/python -m candelabra.backends docs", outsider).strip())
    assert outsider in folder.parents
    assert "python -m candelabra.backends new" in (folder / "backend_guide.md").read_text()
    contract = run(".venv/bin/python -m candelabra.backends contract add mm", outsider)
    assert "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" in contract
    assert "### mm" in contract


def test_no_page_depends_on_the_repository() -> None:
    """What the pages for authors of backends tell them to start from is in the wheel."""
    for page in ("backend_guide.md", "backends.md", "kernel-contract.template.md"):
        text = re.sub(r"<!--.*?-->", "", (ROOT / "docs" / page).read_text(), flags=re.DOTALL)
        assert not re.search(r"\b(?:examples/backends|packages/|tools/|tests/abi|minimal-c)", text), page
