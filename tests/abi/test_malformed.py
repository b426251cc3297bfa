"""Test what a program gets from a malformed backend: a clear error, and a process that lives on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from backends import BATCH, Backend, compile_library, distribution, install, outcomes
from rows import RAISING, ROWS

LOADER = RAISING.format(body="import pathlib; registrar.library(pathlib.Path(__file__).with_name(f'lib{__name__}.so'))")


def backend_of(number: int) -> Backend:
    """Return the backend of a row."""
    row = ROWS[number]
    return Backend(f"bad{number}", row.declarations, row.kernels, row.setup, row.result)


def install_row(folder, cache, number):
    row, name = ROWS[number], f"abi-{ROWS[number].name}"
    if row.plugin is not None:
        distribution(folder, name, f"bad{number}", row.plugin)
    elif row.library is not None:
        distribution(folder, name, f"bad{number}", LOADER)
        (folder / f"lib{name.replace('-', '_')}.so").write_bytes(row.library)
    else:
        install(folder, cache, name, backend_of(number))


@pytest.fixture(scope="session")
def found(cache, tmp_path_factory):
    """Run all rows, as many in a process as it has device types for."""
    compiled = [k for k, row in enumerate(ROWS) if row.plugin is None and row.library is None]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda k: compile_library(cache, backend_of(k)), compiled))

    def run(first):
        folder = tmp_path_factory.mktemp("rows")
        numbers = range(first, min(first + BATCH, len(ROWS)))
        for k in numbers:
            install_row(folder, cache, k)
        return outcomes(folder, [(ROWS[k].name, f"bad{k}", ROWS[k].program) for k in numbers])

    results = {}
    with ThreadPoolExecutor(2) as pool:
        for part in pool.map(run, range(0, len(ROWS), BATCH)):
            results.update(part)
    return results


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(found, row):
    assert row.name in found, "a row before this one ended the process"
    result = found[row.name]
    assert "died" not in result, result["died"]
    assert result["cpu"] == "[2.0, 2.0]"
    if row.error is None:
        assert result.get("value") == row.message, result
        return
    assert result.get("error") == row.error, result
    assert row.message in result["message"]
    assert row.absent not in result["message"]
    assert not row.names or f"abi-{row.name}" in result["message"] + result["notes"], result


def test_names_are_unique():
    assert len({row.name for row in ROWS}) == len(ROWS) >= 60
