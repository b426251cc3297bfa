"""Start ranks, and collect what each of them has found out.

The ranks find one another by PMI-1, over a socket of each, as they do under candelabra.distributed.
MPI's own mpiexec is not used: it ends all ranks when one dies.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent


class PmiServer:
    """PMI-1 for the ranks of one machine: a table of texts, and barriers."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.selector = selectors.DefaultSelector()
        self.table = {"PMI_process_mapping": f"(vector,(0,1,{ranks}))"}
        self.waiting: list[socket.socket] = []
        self.unread: dict[socket.socket, bytes] = {}

    def connect(self) -> socket.socket:
        """Return a rank's end of a new connection."""
        server, client = socket.socketpair()
        self.selector.register(server, selectors.EVENT_READ)
        self.unread[server] = b""
        return client

    def serve(self, seconds: float) -> None:
        """Answer what arrives within the time."""
        for key, _ in self.selector.select(seconds):
            peer = key.fileobj
            assert isinstance(peer, socket.socket)
            try:
                data = peer.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                self.selector.unregister(peer)
                peer.close()
                continue
            *lines, self.unread[peer] = (self.unread[peer] + data).split(b"\n")
            for line in lines:
                self.answer(peer, dict(word.split("=", 1) for word in line.decode().split()))

    def answer(self, peer: socket.socket, asked: dict[str, str]) -> None:
        command = asked["cmd"]
        if command == "barrier_in":
            self.waiting.append(peer)
            if len(self.waiting) == self.ranks:
                for each in self.waiting:
                    each.sendall(b"cmd=barrier_out rc=0\n")
                self.waiting.clear()
            return
        if command == "put":
            self.table[asked["key"]] = asked["value"]
        value = self.table.get(asked.get("key", ""))
        answers = {
            "init": "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "maxes kvsname_max=64 keylen_max=64 vallen_max=1024 rc=0",
            "get_appnum": "appnum appnum=0 rc=0",
            "get_my_kvsname": "my_kvsname kvsname=tests rc=0",
            "get_universe_size": f"universe_size size={self.ranks} rc=0",
            "put": "put_result rc=0 msg=success",
            "get": "get_result rc=-1 msg=unknown" if value is None else f"get_result rc=0 value={value}",
            "finalize": "finalize_ack rc=0",
        }
        peer.sendall(f"cmd={answers[command]}\n".encode())


def start_ranks(
    script: str, arguments: list[str], ranks: int, folder: Path, timeout: float = 240.0
) -> list[dict[str, str]]:
    """Run ``SCRIPT.py`` of this folder on some ranks. Each writes a dictionary of what it has found
    to ``RANK.json``: a text for each check, empty where it has passed.
    """
    folder.mkdir(exist_ok=True)
    server = PmiServer(ranks)
    command = [sys.executable, str(FOLDER / f"{script}.py"), str(folder), *arguments]
    processes = []
    with (folder / "output.txt").open("w") as output:
        for rank in range(ranks):
            with server.connect() as client:
                descriptor = client.fileno()
                given = {"PMI_FD": str(descriptor), "PMI_RANK": str(rank), "PMI_SIZE": str(ranks)}
                process = subprocess.Popen(
                    command,
                    env={**os.environ, **given},
                    pass_fds=[descriptor],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
                processes.append(process)
        end = time.monotonic() + timeout
        while any(process.poll() is None for process in processes) and time.monotonic() < end:
            server.serve(0.02)
        for process in processes:
            process.kill()
            process.wait()
    text = (folder / "output.txt").read_text()
    found = []
    for rank in range(ranks):
        path = folder / f"{rank}.json"
        found.append(json.loads(path.read_text()) if path.exists() else {"": f"rank {rank} wrote nothing: {text}"})
    return found
