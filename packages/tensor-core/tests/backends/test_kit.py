"""``python -m candelabra.backends`` for authors: new, contract, docs, and the summary of --verify.
What the templates in C and C++ build is tested in tests/examples.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from candelabra.backends import __main__ as command
from candelabra.backends import new, speed, tiers

#: What no template may leave in a file: a field that nothing replaced.
FIELD = re.compile(r"@[A-Z]+@")


@pytest.mark.parametrize("language", new.LANGUAGES)
def test_every_file_is_complete(tmp_path, language):
    written = new.write("My-Device", language, tmp_path / "made")
    assert len(written) == len(set(written)) > 9
    for path in written:
        text = path.read_text()
        assert not FIELD.search(text), path
        assert text.endswith("\n")
        if path.suffix == ".py":
            ast.parse(text)
    project = tomllib.loads((tmp_path / "made" / "pyproject.toml").read_text())
    assert project["project"]["name"] == "my-device"
    assert project["project"]["entry-points"]["candelabra.backends"] == {"mydevice": "my_device"}
    # Host memory is no accelerator's.
    assert ("candelabra.accelerators" in project["project"]["entry-points"]) == (language != "python")
    table = (tmp_path / "made" / "README.md").read_text()
    for path in written:
        if path.parent.name in ("src", "my_device") and path.name != "__init__.py":
            assert re.search(rf"\| `\S*{path.name}` \| \w+", table), path


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_the_templates_have_the_required_tier(tmp_path, language):
    """A kernel for each operator, by its name in the sources, and none that the catalogue lacks."""
    written = new.write("d", language, tmp_path)
    text = "".join(path.read_text() for path in written if path.suffix in (".c", ".cpp"))
    named = set(re.findall(r'\(table, "(\w+)"|\{"(\w+)", \w|table\.add<[^;]*>\(\s*"(\w+)"', text))
    found = {name for names in named for name in names if name}
    assert found == set(tiers.operators_of("required"))


@pytest.mark.parametrize("name", ["2fast", "", "my device", "-x", "ä"])
def test_names_that_are_none(tmp_path, name, capsys):
    with pytest.raises(ValueError, match="is not a name"):
        new.write(name, "c", tmp_path / "made")
    assert not (tmp_path / "made").exists()
    if name and not name.startswith("-"):
        assert command.main(["new", name, "--folder", str(tmp_path / "made")]) == 1
        assert "is not a name" in capsys.readouterr().err


def test_a_name_of_candelabras_own():
    with pytest.raises(ValueError, match="'cuda' is a device type of Candelabra's own"):
        new.device_type_of("CUDA")


def test_files_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(FileExistsError, match="has files already"):
        new.write("acme", "c", tmp_path)
    assert command.main(["new", "acme", "--folder", str(tmp_path)]) == 1
    assert "has files already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_new_says_what_is_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["new", "acme", "--cpp"]) == 0
    out = capsys.readouterr().out
    assert "acme/src/backend.cpp" in out
    assert "python -m candelabra.backends --verify acme" in out


def test_a_backend_in_python_passes_its_own_tests(tmp_path):
    new.write("acme-py", "python", tmp_path / "acme-py")
    information = tmp_path / "site" / "acme_py-0.1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-py\nVersion: 0.1.0\n")
    (information / "entry_points.txt").write_text("[candelabra.backends]\nacmepy = acme_py\n")
    (tmp_path / "site" / "acme_py").symlink_to(tmp_path / "acme-py" / "src" / "acme_py")
    program = """
from candelabra.backends import tiers
from candelabra.testing import conformance
outcomes = conformance.run("acmepy", tiers.operators_of("required"))
assert [outcome.failures for outcome in outcomes] == [[]] * len(outcomes), outcomes
assert {outcome.state for outcome in outcomes} == {"passed"}, outcomes
assert all(outcome.kernel for outcome in outcomes)
print(tiers.tier_of("acmepy").reached)
"""
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "required\n"


def test_speed_beside_a_copy():
    rates = speed.measure("cpu", 1 << 12)
    assert next(iter(rates)) == "copy"
    assert {"add", "exp", "sum", "fill_"} <= set(rates)
    assert all(rate > 0 for rate in rates.values())
    lines = speed.report("cpu", 1 << 18)
    assert lines[0] == "speed with tensors of 1 MiB (float32), read and written:"
    assert re.fullmatch(r"  copy +[\d.]+ GB/s", lines[1])
    assert all(re.fullmatch(r"  .+ +[\d.]+ GB/s +\d+% of a copy", line) for line in lines[2:])


def test_what_is_missing_for_the_next_tier():
    found = tiers.Tiers("required", {"required": [], "fast": ["relu", "gelu"], "complete": ["sort"]})
    assert command.tier_lines(found) == ["tiers: required", "  for fast, 2 kernels are missing: relu gelu"]
    assert command.tier_lines(tiers.Tiers(None, {"required": ["add"], "fast": []})) == [
        "tiers: none is reached",
        "  for required, 1 kernels are missing: add",
    ]
    assert command.tier_lines(tiers.Tiers("complete", {"required": [], "complete": []})) == ["tiers: complete"]


def test_verify_prints_tiers_and_speed(capsys):
    assert command.main(["--verify", "cpu", "neg"]) == 0
    out = capsys.readouterr().out
    assert "1 operators right, 0 wrong" in out
    assert "tiers: complete" in out
    assert "% of a copy" in out


def test_the_contract_of_an_operator(capsys):
    assert command.main(["contract", "mm"]) == 0
    out = capsys.readouterr().out
    assert "mm(Tensor self, Tensor mat2) -> Tensor" in out
    assert "Matrices have any strides" in out
    assert command.main(["contract", "view"]) == 1
    assert "'view' is no operator that a backend has a kernel for" in capsys.readouterr().err


def test_the_pages_are_found(capsys):
    assert command.main(["docs"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    for page in ("backend_guide.md", "backends.md", "random-numbers.md"):
        assert (folder / page).read_text().startswith("# ")
