"""A store on a server, for the processes of one or several machines."""

from __future__ import annotations

import socket
import time
from datetime import timedelta

from ..errors import DistStoreError
from . import wire
from .base import DEFAULT_TIMEOUT, Store, seconds
from .client import Connection
from .server import StoreServer

_ARRIVED = "candelabra/arrived"
#: The servers of this process that several stores share, by port.
_shared: dict[int, StoreServer] = {}


class TCPStore(Store):
    """A store on a server, which one of the processes runs.

    Parameters
    ----------
    host_name : str
        The server's host. The server listens at this address only.
    port : int
        The server's port; 0 for a free one, which the attribute `port` names.
    world_size : int, optional
        The number of processes that use the store.
    is_master : bool
        Whether this process runs the server, in a thread.
    timeout : timedelta
        How long `get` and `wait` wait, and how long the server may take to start.
    wait_for_workers : bool
        Whether the server's process waits until `world_size` processes have connected.
    multi_tenant : bool
        Whether several stores of this process may share the server of one port.
    master_listen_fd : int, optional
        A socket that listens already, for the server.
    use_libuv : bool
        Has no effect: there is one server, on epoll.
    token : str, optional
        What all processes of the job know; by default CANDELABRA_JOB_TOKEN, which the launcher
        sets, or the number of the batch system's job.

    Raises
    ------
    DistNetworkError
        The port is in use, the server is not there in time, or it belongs to another job.

    Examples
    --------
    >>> from candelabra.distributed import TCPStore
    >>> store = TCPStore("127.0.0.1", 0, 1, is_master=True)
    >>> store.set("word", "seven")
    >>> store.get("word")
    b'seven'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
        token: str | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= port < 1 << 16:
            raise ValueError(f"port must be between 0 and 65535, but got {port}")
        if not is_master and port == 0:
            raise ValueError("port 0 is for the master only; the others need the port that it got")
        self.set_timeout(timeout)
        self._token = wire.job_token() if token is None else token
        self._host = host_name
        self._server: StoreServer | None = None
        if is_master:
            self._server = self._serve(port, multi_tenant, master_listen_fd)
            port = self._server.port
        self._connection = Connection(host_name, port, "store", [], self._token, seconds(timeout))
        if wait_for_workers and world_size is not None and world_size > 0:
            self._meet(world_size)

    def _serve(self, port: int, is_shared: bool, descriptor: int | None) -> StoreServer:
        if is_shared and port in _shared:
            return _shared[port]
        listener = None if descriptor is None else socket.socket(fileno=descriptor)
        server = StoreServer(self._host, port, self._token, listener)
        if is_shared:
            _shared[server.port] = server
        return server

    def _meet(self, world_size: int) -> None:
        arrived = self.add(_ARRIVED, 1)
        if self._server is None:
            return
        end = time.monotonic() + self._timeout.total_seconds()
        while arrived < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {seconds(self._timeout):g} seconds waiting for clients. "
                    f"{arrived}/{world_size} clients joined."
                )
            time.sleep(0.01)
            arrived = self.add(_ARRIVED, 0)

    def _request(self, code: int, parts: list[bytes], timeout: float) -> list[bytes]:
        return self._connection.request(code, parts, timeout)

    @property
    def host(self) -> str:
        """The server's host."""
        return self._host

    @property
    def port(self) -> int:
        """The server's port."""
        return self._connection.port

    @property
    def token(self) -> str:
        """The token by which the server knows the processes of the job."""
        return self._token

    @property
    def server(self) -> StoreServer | None:
        """The server, if it runs in this process."""
        return self._server

    def clone(self) -> TCPStore:
        return TCPStore(self._host, self.port, timeout=self._timeout, wait_for_workers=False, token=self._token)

    def close(self) -> None:
        """Close the connection, and the server if this store started it."""
        self._connection.close()
        if self._server is not None and self._server.port not in _shared:
            self._server.close()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self.close()
