"""The files in shared memory that MPI leaves if processes are killed while it starts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FOLDER = Path("/dev/shm")


def _fnv1a(data: bytes) -> int:
    result = 0x811C9DC5
    for byte in data:
        result = (result ^ byte) * 0x01000193 & 0xFFFFFFFF
    return result


def sweep(kvs_name: str) -> None:
    """Remove the files that MPICH made for one world, whose name it puts into theirs as a hash.

    Parameters
    ----------
    kvs_name : str
        The name that PMI gave to the world: see `store.pmi.kvs_name`.
    """
    prefix = f"mpich_shm_{_fnv1a(kvs_name.encode()):x}_"
    with suppress(FileNotFoundError):
        for name in os.listdir(_FOLDER):
            if name.startswith(prefix):
                with suppress(FileNotFoundError):
                    (_FOLDER / name).unlink()
