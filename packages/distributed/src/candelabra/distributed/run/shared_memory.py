"""The files in shared memory that processes leave which were killed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_FOLDER = Path("/dev/shm")
#: MPI libraries put the number of the process, or of the job, into the names of their files.
_NAMES = re.compile(r"^(?:mpich|MPICH|mpi|vader|sm|psm|candelabra)[\w.-]*$")


def sweep(processes: Iterable[int]) -> None:
    """Remove the files in shared memory whose names have the number of one of these processes.

    Parameters
    ----------
    processes : iterable of int
        Processes of this user that have ended.
    """
    numbers = {str(process) for process in processes}
    with suppress(OSError):
        for file in _FOLDER.iterdir():
            if not _NAMES.match(file.name) or not numbers.intersection(re.findall(r"\d+", file.name)):
                continue
            with suppress(OSError):
                if file.stat().st_uid == os.getuid():
                    file.unlink()
