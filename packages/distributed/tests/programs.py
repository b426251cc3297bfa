"""Programs of the ranks, and the environment in which they start."""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
#: What carries the collectives out: the plain engine of the tests, or an installed one.
ENGINE = os.environ.get("CANDELABRA_TEST_ENGINE", "cpu:reference")
#: The start of every rank's program.
PRELUDE = f"""
import os, signal, sys, time
from datetime import timedelta
sys.path.insert(0, {str(HERE)!r})
import candelabra
import candelabra.distributed as dist
import store_engine
store_engine.add()
def raised(kind, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")
def line(*words):  # one write, which the lines of other ranks do not split
    sys.stdout.write(" ".join(map(str, words)) + chr(10))
    sys.stdout.flush()
"""


def environment() -> dict[str, str]:
    dropped = re.compile(
        r"^(RANK|WORLD_SIZE|LOCAL_|MASTER_|TORCHELASTIC|PET_|CANDELABRA_JOB|CANDELABRA_WORLD|SLURM_|PMI|OMPI_)"
    )
    return {key: value for key, value in os.environ.items() if not dropped.match(key)}
