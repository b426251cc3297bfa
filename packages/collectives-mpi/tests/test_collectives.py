"""Every collective, dtype and reduction against NumPy, on two, three and four ranks. The processes
of one number of ranks run all checks of ``rank_collectives.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from processes import FOLDER, start_ranks

CHECKS = re.findall(r"^@check\ndef (\w+)", (FOLDER / "rank_collectives.py").read_text(), re.MULTILINE)


@pytest.fixture(scope="module", params=[2, 3, 4])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return start_ranks("rank_collectives", [], request.param, Path(tmp_path_factory.mktemp("ranks")))


@pytest.mark.parametrize("name", CHECKS)
def test_on_ranks(found: list[dict[str, str]], name: str) -> None:
    for rank, results in enumerate(found):
        assert results.get(name, results) == "", f"on rank {rank}"
