"""Test the calls that the engine for NCCL makes, on a communicator that records them."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import candelabra
from candelabra.distributed import HashStore
from candelabra.distributed.engines import nccl


class Recorder:
    calls: list[tuple] = []
    device = candelabra.device("cuda", 0)

    def __init__(self, *arguments, **options):
        self.calls.append(("new", *arguments, options))

    def __getattr__(self, name):
        return lambda *arguments, **options: self.calls.append((name, *arguments, options))


@pytest.fixture
def engine(monkeypatch):
    @contextmanager
    def group(device):
        Recorder.calls.append(("group", device))
        yield
        Recorder.calls.append(("end", device))

    monkeypatch.setattr(nccl.communication, "is_available", lambda kind: kind == "cuda")
    monkeypatch.setattr(nccl.communication, "unique_id", lambda kind: b"x" * 128)
    monkeypatch.setattr(nccl.communication, "Communicator", Recorder)
    monkeypatch.setattr(nccl.communication, "group", group)
    monkeypatch.setattr(nccl.QueuedCommunicator, "_request", lambda self: "queued")
    monkeypatch.setattr(Recorder, "calls", [])
    made = nccl.candelabra_process_group_engine()
    made.start(4, 8, {}, candelabra.device("cuda", 0))
    return made


def test_rank_0_of_a_group_makes_the_id(engine):
    store = HashStore()
    engine.communicator([4, 6], 1, "1", 5.0, store=store)
    assert store.get("id") == b"x" * 128
    expected = ("new", candelabra.device("cuda", 0), b"x" * 128, 0, 2, {"timeout": 5.0, "name": "1"})
    assert Recorder.calls == [expected]
    engine.communicator([2, 4], 2, "2", None, store=store)  # the other rank has made it
    assert Recorder.calls[-1][3:5] == (1, 2)


def test_collectives(engine):
    store = HashStore()
    ranks = engine.communicator([4], 0, "0", 5.0, store=store)
    a, b = candelabra.ones(2), candelabra.zeros(2)
    Recorder.calls.clear()
    for kind in ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"):
        assert ranks.start(kind, a, b, "max", 1) == "queued"
    names = [call[0] for call in Recorder.calls]
    assert names == ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"]
    assert Recorder.calls[0][1] is a and Recorder.calls[0][2] == "max" and Recorder.calls[0][3]["out"] is b
    assert Recorder.calls[3][1] is b and Recorder.calls[3][2] is a
    with pytest.raises(RuntimeError, match="does not reduce by bxor"):
        ranks.run("all_reduce", a, b, "bxor", 0)
    with pytest.raises(ValueError, match="no collective 'other'"):
        ranks.run("other", a, b, "sum", 0)


def test_sends_and_receives_are_one_group(engine):
    ranks = engine.communicator([4], 0, "0", 5.0, store=HashStore())
    a, b = candelabra.ones(2), candelabra.zeros(2)
    Recorder.calls.clear()
    assert ranks.exchange([(a, 1, 7)], [(b, 2, 7)]) == "queued"
    assert [call[0] for call in Recorder.calls] == ["group", "send", "receive", "end"]
    assert (Recorder.calls[1][2], Recorder.calls[2][2]) == (1, 2)
    with pytest.raises(ValueError, match="recv\\(\\) needs src"):
        ranks.exchange([], [(b, -1, 0)])


def test_a_failure_aborts_what_is_queued(engine):
    ranks = engine.communicator([4], 0, "0", 5.0, store=HashStore())
    Recorder.calls.clear()
    engine.fail("rank 3 is gone")
    assert [call[0] for call in Recorder.calls] == ["abort"]
    ranks.close()
    assert [call[0] for call in Recorder.calls] == ["abort", "abort", "close"]


def test_without_a_device(monkeypatch):
    monkeypatch.setattr(nccl.communication, "is_available", lambda kind: False)
    with pytest.raises(RuntimeError, match="needs a CUDA device"):
        nccl.NcclEngine().start(0, 1, {}, candelabra.device("cuda", 0))
