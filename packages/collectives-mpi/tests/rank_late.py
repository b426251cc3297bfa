"""The last rank never starts MPI, so that the others must give up at their time limit."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from checks import raised

import candelabra_collectives_mpi as mpi


def main() -> None:
    rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
    if rank == size - 1:
        time.sleep(1.5)
    else:
        raised(TimeoutError, "timed out after 500 ms", mpi.start, 0.5)
        raised(RuntimeError, "the start of MPI: timed out", mpi.start, 0.5)
    (Path(sys.argv[1]) / f"{rank}.json").write_text(json.dumps({"found": ""}))


if __name__ == "__main__":
    main()
