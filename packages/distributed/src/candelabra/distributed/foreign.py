"""Start under a foreign launcher that tells no address of a store, like mpiexec."""

from __future__ import annotations

import json
import secrets
from datetime import timedelta

from candelabra import device

from .bytes_tensors import bytes_of_tensor, tensor_of_bytes
from .engines import registry
from .job import own_address
from .store import Store, TCPStore

_BYTES = 512


def start_by_engine(backends: dict[str, str], rank: int, size: int, timeout: timedelta) -> Store:
    """Return a store whose address rank 0 has sent to the others by the engine.

    MPI starts by the launcher's own process manager.
    """
    host = device("cpu")
    name = backends.get("cpu")
    if name is None:
        raise ValueError(f"mpiexec tells no MASTER_ADDR, which the backends {backends} need")
    engine = registry.engine_of(name)
    if engine.name != "mpi":
        raise ValueError(f"mpiexec tells no MASTER_ADDR, which the backend {name!r} needs")
    engine.start(rank, size, None, host)
    store: Store | None = None
    text = b""
    if rank == 0:
        token = secrets.token_hex(16)
        address = own_address()
        store = TCPStore(address, 0, is_master=True, timeout=timeout, token=token)
        text = json.dumps([address, store.port, token]).encode()
    message = tensor_of_bytes(text.ljust(_BYTES), host)
    # The number of the world's communicator, which is made again for the process group.
    ranks = engine.communicator(range(size), 0, "start", timeout.total_seconds())
    ranks.run("broadcast", message, message, "sum", 0)
    ranks.close()
    if store is None:
        address, port, token = json.loads(bytes_of_tensor(message))
        store = TCPStore(address, port, timeout=timeout, wait_for_workers=False, token=token)
    return store
