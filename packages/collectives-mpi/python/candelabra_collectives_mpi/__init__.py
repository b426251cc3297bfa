"""Candelabra's collectives for host memory, over MPI: the process group engine ``mpi``.

candelabra.distributed finds this package by its entry point. Without it, `start` makes
candelabra.communication work for the device ``cpu``:

    mpiexec -n 2 python program.py

    import candelabra_collectives_mpi
    from candelabra.communication import Communicator, unique_id

    rank, size = candelabra_collectives_mpi.start()
    with Communicator("cpu", unique_id("cpu"), rank, size) as ranks:
        total = ranks.all_reduce(candelabra.ones(3))

Importing the package does not start MPI.
"""

from __future__ import annotations

import pluggy

from candelabra_collectives_mpi.engine import Engine
from candelabra_collectives_mpi.library import library_path, mpi_path, start, version

__all__ = ["Engine", "library_path", "mpi_path", "start", "version"]

__version__ = "0.1.0"

_hook = pluggy.HookimplMarker("candelabra")


@_hook
def candelabra_process_group_engine() -> Engine:
    """Return the engine (the hook of the entry-point group ``candelabra.process_groups``)."""
    return Engine()
