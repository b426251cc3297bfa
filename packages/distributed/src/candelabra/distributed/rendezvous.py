"""How the processes of a job find the store by which they meet: the init methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from . import environment
from .store import FileStore, PrefixStore, Store, TCPStore

#: Of rank 0's own server, where launchers name none.
DEFAULT_PORT = 29500


class NoAddressError(ValueError):
    """The environment has rank and size, but no address of a store."""

    def __init__(self, rank: int, world_size: int) -> None:
        super().__init__("the launcher has set no address of a store")
        self.rank = rank
        self.world_size = world_size


#: What programs have registered, by the scheme of init methods.
_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]) -> None:
    """Let a generator function find the store of init methods with a scheme of its own.

    Parameters
    ----------
    scheme : str
        What comes before ``://``.
    handler : callable
        Called with the init method, in which ``rank=`` and ``world_size=`` are set if they are
        known, and ``timeout=``. Yields the store, the rank and the size of the world.

    Raises
    ------
    RuntimeError
        The scheme is taken.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> def handler(url, timeout):
    ...     yield dist.HashStore(), 0, 1
    >>> dist.register_rendezvous_handler("example", handler)
    >>> dist.init_process_group("fake", init_method="example://here")
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if scheme in _handlers or scheme in ("env", "tcp", "file"):
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def _by_handler(init_method: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    parts = urlsplit(init_method)
    known = {"rank": rank, "world_size": world_size}
    query = {key: value for key, (*_, value) in parse_qs(parts.query).items()}
    query |= {key: str(value) for key, value in known.items() if value >= 0}
    return next(_handlers[parts.scheme](urlunsplit(parts._replace(query=urlencode(query))), timeout=timeout))


def rendezvous(init_method: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    """Return the store of an init method, the rank and the size of the world.

    Parameters
    ----------
    init_method : str
        ``env://``, ``tcp://HOST:PORT``, ``file:///PATH`` or one of a registered handler. Rank and
        size may follow as ``?rank=0&world_size=2``.
    rank, world_size : int
        -1 if the init method or the environment says it.
    timeout : timedelta
        How long to wait for the store.

    Raises
    ------
    ValueError
        The method is unknown, or something is missing.
    """
    parts = urlsplit(init_method)
    if parts.scheme in _handlers:
        return _by_handler(init_method, rank, world_size, timeout)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    if parts.scheme == "env":
        return _from_environment(rank, world_size, timeout)
    if parts.scheme not in ("tcp", "file"):
        raise ValueError(f"No rendezvous handler for {parts.scheme}:// in init_method {init_method!r}")
    if rank < 0 or world_size < 0:
        found = environment.launch()
        rank = found.rank if rank < 0 and found.rank is not None else rank
        world_size = found.world_size if world_size < 0 and found.world_size is not None else world_size
    for name, value in (("rank", rank), ("world_size", world_size)):
        if value < 0:
            raise ValueError(f"Error initializing using {parts.scheme}:// rendezvous: {name} parameter missing")
    if parts.scheme == "file":
        if not parts.path:
            raise ValueError("Error initializing using file:// rendezvous: path missing")
        return FileStore(parts.path, world_size), rank, world_size
    if parts.port is None or not parts.hostname:
        raise ValueError("Error initializing using tcp:// rendezvous: port number missing")
    return _tcp(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size


def _tcp(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    is_master = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    return TCPStore(host, port, world_size, is_master, timeout, wait_for_workers=False, multi_tenant=True)


def _from_environment(rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    found = environment.launch()
    rank = found.rank if rank < 0 and found.rank is not None else rank
    world_size = found.world_size if world_size < 0 and found.world_size is not None else world_size
    missing = [name for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)) if value < 0]
    if not missing and found.has_foreign_manager and (found.address is None or found.port is None):
        raise NoAddressError(rank, world_size)
    if found.address is None:
        missing.append("MASTER_ADDR")
    if found.port is None:
        missing.append("MASTER_PORT")
    if missing or found.address is None or found.port is None:
        raise ValueError(
            f"Error initializing using env:// rendezvous: environment variable {', '.join(missing)} expected, but not "
            "set; start the program by python -m candelabra.distributed.run, mpiexec or srun, or set them"
        )
    store = _tcp(found.address, found.port, rank, world_size, timeout)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT")
    return store if attempt is None else PrefixStore(f"worker/attempt_{attempt}", store), rank, world_size
