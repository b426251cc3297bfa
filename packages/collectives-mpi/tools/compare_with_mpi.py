"""Compare all_reduce on tensors with MPI's own blocking function, in the same processes, turn by
turn: ``mpiexec -n 2 python compare_with_mpi.py``.

MPI is called by ctypes, which costs about half a microsecond of a call.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable

import candelabra
import candelabra_collectives_mpi as mpi

#: Handles of the standard ABI.
COMM_WORLD, FLOAT, MAX, IN_PLACE = (ctypes.c_void_p(number) for number in (0x101, 0x210, 0x23, 1))
#: Bytes, and how often they are reduced.
SIZES = {4: 3000, 64 << 10: 500, 1 << 20: 200, 64 << 20: 8}
ROUNDS = 5


def measured(function: Callable[[], object], times: int) -> list[float]:
    """Return the microseconds of each call."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        function()
        found.append((time.perf_counter() - started) * 1e6)
    return found


def main() -> None:
    """Print a table on rank 0."""
    rank, size = mpi.start()
    engine = mpi.Engine()
    engine.start(rank, size, None, candelabra.device("cpu"))
    world = engine.communicator(range(size), 0, "world", 120.0)
    bare = ctypes.CDLL(mpi.mpi_path()).MPI_Allreduce
    bare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 3]
    if rank == 0:
        print(f"{engine.version()}, {size} ranks; microseconds, median (least)")
        print(f"{'bytes':>10}  {'on tensors':>22}  {'MPI_Allreduce':>22}  ratio")
    for nbytes, times in SIZES.items():
        tensor = candelabra.ones(nbytes // 4)
        address = tensor.data_ptr()
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            world.run("barrier")
            ours += measured(lambda: world.run("all_reduce", tensor, tensor, "max"), max(1, times // ROUNDS))  # noqa: B023
            world.run("barrier")
            theirs += measured(
                lambda: bare(IN_PLACE, address, nbytes // 4, FLOAT, MAX, COMM_WORLD), max(1, times // ROUNDS)  # noqa: B023
            )  # fmt: skip
        if rank == 0:
            a, b = statistics.median(ours), statistics.median(theirs)
            print(f"{nbytes:10}  {a:12.1f} ({min(ours):7.1f})  {b:12.1f} ({min(theirs):7.1f})  {a / b:.2f}", flush=True)


if __name__ == "__main__":
    main()
