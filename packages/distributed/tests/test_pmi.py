"""Test the server's side of PMI-1, by which MPI libraries start."""

from __future__ import annotations

import pytest

from candelabra.distributed import DistNetworkError
from candelabra.distributed.store.client import Connection
from candelabra.distributed.store.pmi import process_mapping
from candelabra.distributed.store.server import StoreServer


class Rank:
    def __init__(self, port: int, rank: int, size: int, world: str = "world", host: str = "here") -> None:
        details = [part.encode() for part in (world, str(size), str(rank), host)]
        self.connection = Connection("127.0.0.1", port, "pmi", details, "", 10)
        self.connection.socket.settimeout(10)
        self.buffer = b""

    def send(self, text: str) -> None:
        self.connection.socket.sendall(text.encode() + b"\n")

    def line(self) -> str:
        while b"\n" not in self.buffer:
            self.buffer += self.connection.socket.recv(4096)
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def ask(self, text: str) -> str:
        self.send(text)
        return self.line()


@pytest.fixture
def server():
    made = StoreServer("127.0.0.1", 0, "")
    yield made
    made.close()


def test_two_ranks_meet(server):
    first, second = (Rank(server.port, rank, 2) for rank in range(2))
    assert first.ask("cmd=init pmi_version=1 pmi_subversion=1").startswith("cmd=response_to_init pmi_version=1")
    assert "vallen_max=1024" in first.ask("cmd=get_maxes")
    name = first.ask("cmd=get_my_kvsname")
    assert name == second.ask("cmd=get_my_kvsname")
    assert first.ask("cmd=put kvsname=x key=card-0 value=a b=c d") == "cmd=put_result rc=0 msg=success"
    first.send("cmd=barrier_in")
    second.send("cmd=barrier_in")
    assert first.line() == second.line() == "cmd=barrier_out rc=0"
    assert second.ask("cmd=get kvsname=x key=card-0").endswith("value=a b=c d")
    assert second.ask("cmd=get kvsname=x key=card-1").startswith("cmd=get_result rc=-1")
    assert second.ask("cmd=get kvsname=x key=PMI_process_mapping").endswith("value=(vector,(0,1,2))")
    assert second.ask("cmd=get_universe_size") == "cmd=universe_size size=2 rc=0"
    assert "rc=-1" in second.ask("cmd=spawn nprocs=1")
    assert second.ask("cmd=finalize") == "cmd=finalize_ack rc=0"


def test_the_mapping_waits_for_all(server):
    first = Rank(server.port, 0, 2, host="a")
    first.send("cmd=get kvsname=x key=PMI_process_mapping")
    Rank(server.port, 1, 2, host="b")
    assert first.line().endswith("value=(vector,(0,1,1),(1,1,1))")


def test_worlds_have_names_of_their_own(server):
    names = {Rank(server.port, 0, 1, world).ask("cmd=get_my_kvsname") for world in ("first", "second")}
    assert len(names) == 2


def test_ranks_that_do_not_fit(server):
    kept = Rank(server.port, 0, 2)
    for rank, size in ((0, 2), (2, 2), (1, 3)):
        with pytest.raises(DistNetworkError, match=r"there already|does not fit"):
            Rank(server.port, rank, size)
    assert kept.ask("cmd=get_appnum") == "cmd=appnum appnum=0 rc=0"


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("aa", "(vector,(0,1,2))"),
        ("aabb", "(vector,(0,1,2),(1,1,2))"),
        ("aba", "(vector,(0,1,1),(1,1,1),(0,1,1))"),
    ],
)
def test_process_mapping(hosts, expected):
    assert process_mapping(dict(enumerate(hosts))) == expected
