"""Failures: a rank that is absent, late or dead, messages of the wrong size, interrupts."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from processes import FOLDER, start_ranks

CHECKS = re.findall(r"^@check\ndef (\w+)", (FOLDER / "rank_failures.py").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return start_ranks("rank_failures", [], 2, Path(tmp_path_factory.mktemp("ranks")))


@pytest.mark.parametrize("name", CHECKS)
def test_of_one_communicator(found: list[dict[str, str]], name: str) -> None:
    for rank, results in enumerate(found):
        assert results.get(name, results) == "", f"on rank {rank}"


@pytest.mark.parametrize("how", ["all_reduce", "request", "receive", "new_group", "limit"])
def test_a_rank_is_killed(tmp_path: Path, how: str) -> None:
    before = set(os.listdir("/dev/shm"))
    found = start_ranks("rank_lost", [how], 3, tmp_path)
    assert [each.get("found") for each in found[:2]] == ["", ""], found
    left = [name for name in set(os.listdir("/dev/shm")) - before if "mpi" in name]
    assert not left


def test_a_rank_does_not_start(tmp_path: Path) -> None:
    found = start_ranks("rank_late", [], 3, tmp_path)
    assert [each.get("found") for each in found] == ["", "", ""], found
