"""Where a store's server listens, and what identifies a host."""

from __future__ import annotations

import errno
import os
import socket
from functools import cache
from pathlib import Path

from ..errors import DistNetworkError

_BIND = "CANDELABRA_STORE_BIND"


def resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple]]:
    """Return the addresses of a host, IPv4 first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DistNetworkError(f"the host {host!r} of the store is unknown: {error}") from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return [(entry[0], entry[4]) for entry in found]


def notice_dead_peers(connection: socket.socket) -> None:
    """Make a connection end if the other machine does not answer for some 12 s, and send at
    once.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host's address alone, or at that of
    CANDELABRA_STORE_BIND.
    """
    wanted = os.environ.get(_BIND) or host
    problems = []
    for family, address in resolve(wanted, port):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(4096)
            return listener
        except OSError as error:
            listener.close()
            problems.append(f"{address[0]}: {error.strerror}")
            if error.errno == errno.EADDRINUSE:
                raise DistNetworkError(
                    f"the store cannot listen on port {port} of {wanted}, which is in use (EADDRINUSE); use another port, "
                    f"or port 0 for a free one"
                ) from None
    raise DistNetworkError(
        f"the store cannot listen on port {port} of {wanted!r}: {'; '.join(problems)}. If this machine is reached by an "
        f"address that it does not have itself, set {_BIND} to the address to listen on"
    )


@cache
def host_identity() -> str:
    """Return a text that is equal in processes that can share memory."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ipc = os.readlink("/proc/self/ns/ipc")
        shared = os.stat("/dev/shm").st_dev
    except OSError:
        return socket.gethostname()
    return f"{boot}/{ipc}/{shared}"


@cache
def process_space() -> str:
    """Return a text that is equal in processes that see one another's process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()
