"""PMI-1, the protocol by which MPI libraries meet: the server's side.

After the handshake of a store's server, the connection speaks lines of ``key=value`` words. MPICH
inherits such a connection through the environment variable PMI_FD, and so starts without mpiexec.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .server import Peer, StoreServer

_MAX_LINE = 1 << 16


class PmiWorld:
    """The ranks of one MPI_COMM_WORLD."""

    def __init__(self, name: str, token: str, size: int) -> None:
        self.name = name
        self.size = size
        self.kvs_name = kvs_name(name, token)
        self.values: dict[str, str] = {}
        self.hosts: dict[int, str] = {}
        self.peers: dict[int, Peer] = {}
        self.at_barrier: set[int] = set()
        #: Ranks that asked where the others run, before all were there.
        self.asking: list[Peer] = []


def kvs_name(world: str, token: str) -> str:
    """Return the name that PMI gives to a world. MPICH derives the names of its shared memory from
    it, so that each world of each job needs its own.
    """
    return f"candelabra_{hashlib.sha256(f'{token} {world}'.encode()).hexdigest()[:16]}"


class PmiRank:
    """One rank's connection."""

    def __init__(self, world: PmiWorld, rank: int) -> None:
        self.world = world
        self.rank = rank


class PmiService:
    """Answers the ranks' requests."""

    def __init__(self, server: StoreServer, token: str) -> None:
        self._server = server
        self._token = token
        self._worlds: dict[str, PmiWorld] = {}

    def greet(self, peer: Peer, details: list[bytes]) -> None:
        """Take a new rank: the world's name and size, the rank and the identity of its host."""
        name, size, rank, host = (part.decode() for part in details)
        world = self._worlds.get(name)
        if world is None:
            world = self._worlds[name] = PmiWorld(name, self._token, int(size))
        number = int(rank)
        if world.size != int(size) or not 0 <= number < world.size:
            raise ValueError(f"rank {rank} of {size} does not fit the world {name!r} of {world.size} ranks")
        if number in world.peers:
            raise ValueError(f"rank {rank} of the world {name!r} is there already")
        peer.state = PmiRank(world, number)
        world.peers[number] = peer
        world.hosts[number] = host
        self._answer_waiting(world)

    def receive(self, peer: Peer) -> None:
        """Answer the complete lines that a rank has sent."""
        state: PmiRank = peer.state
        while (end := peer.incoming.find(b"\n")) >= 0:
            line = peer.incoming[:end].decode()
            del peer.incoming[: end + 1]
            self._answer(peer, state, _words(line))
        if len(peer.incoming) > _MAX_LINE:
            raise ValueError("a line of PMI is too long")

    def lost(self, peer: Peer) -> None:
        """Forget a rank, and the world with its last one."""
        state: PmiRank = peer.state
        state.world.peers.pop(state.rank, None)
        if not state.world.peers and len(state.world.hosts) == state.world.size:
            self._worlds.pop(state.world.name, None)

    def fail(self, name: str) -> None:
        """End the connections of a world whose rank has failed: MPI would wait for it for ever."""
        world = self._worlds.pop(name, None)
        if world is not None:
            for peer in list(world.peers.values()):
                self._server.drop(peer)

    def _reply(self, peer: Peer, text: str) -> None:
        self._server.send_bytes(peer, text.encode() + b"\n")

    def _answer(self, peer: Peer, state: PmiRank, words: dict[str, str]) -> None:
        world = state.world
        command = words.get("cmd", "")
        match command:
            case "init":
                self._reply(peer, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
            case "get_maxes":
                self._reply(peer, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0")
            case "get_appnum":
                self._reply(peer, "cmd=appnum appnum=0 rc=0")
            case "get_my_kvsname":
                self._reply(peer, f"cmd=my_kvsname kvsname={world.kvs_name} rc=0")
            case "get_ranks2hosts":
                self._reply(peer, "cmd=put_ranks2hosts 0 0")
            case "get_universe_size":
                self._reply(peer, f"cmd=universe_size size={world.size} rc=0")
            case "put":
                world.values[words.get("key", "")] = words.get("value", "")
                self._reply(peer, "cmd=put_result rc=0 msg=success")
            case "get":
                self._get(peer, world, words.get("key", ""))
            case "barrier_in":
                world.at_barrier.add(state.rank)
                self._end_barrier(world)
            case "finalize":
                self._reply(peer, "cmd=finalize_ack rc=0")
            case "abort":
                return  # the process ends, which its launcher or its health connection reports
            case _:
                self._reply(peer, f"cmd={command}_result rc=-1 msg=not_supported")

    def _get(self, peer: Peer, world: PmiWorld, key: str) -> None:
        if key == "PMI_process_mapping":
            if len(world.hosts) < world.size:
                world.asking.append(peer)
            else:
                self._reply(peer, f"cmd=get_result rc=0 msg=success value={process_mapping(world.hosts)}")
        elif key == "PMI_dead_processes":
            self._reply(peer, "cmd=get_result rc=0 msg=success value=")
        elif key in world.values:
            self._reply(peer, f"cmd=get_result rc=0 msg=success value={world.values[key]}")
        else:
            self._reply(peer, "cmd=get_result rc=-1 msg=key_not_found value=unknown")

    def _answer_waiting(self, world: PmiWorld) -> None:
        if world.asking and len(world.hosts) == world.size:
            asking, world.asking = world.asking, []
            for peer in asking:
                self._get(peer, world, "PMI_process_mapping")

    def _end_barrier(self, world: PmiWorld) -> None:
        if len(world.at_barrier) < world.size:
            return
        world.at_barrier.clear()
        for peer in world.peers.values():
            self._reply(peer, "cmd=barrier_out rc=0")


def _words(line: str) -> dict[str, str]:
    """Split a line; the last value may contain blanks."""
    words: dict[str, Any] = {}
    last = ""
    for word in line.split(" "):
        key, equals, value = word.partition("=")
        if equals and last != "value":
            words[key] = value
            last = key
        elif last:
            words[last] += f" {word}"
    return words


def process_mapping(hosts: dict[int, str]) -> str:
    """Return which ranks run on which host, in PMI's notation: blocks of the first host's number,
    the number of hosts and the ranks on each.
    """
    numbers: dict[str, int] = {}
    blocks: list[list[int]] = []
    for rank in range(len(hosts)):
        host = numbers.setdefault(hosts[rank], len(numbers))
        if blocks and blocks[-1][0] == host:
            blocks[-1][1] += 1
        else:
            blocks.append([host, 1])
    return "(vector," + ",".join(f"({host},1,{count})" for host, count in blocks) + ")"
