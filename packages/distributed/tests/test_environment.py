"""Test what launchers and batch systems tell, and the init methods."""

from __future__ import annotations

from datetime import timedelta

import pytest

import candelabra.distributed as dist
from candelabra import overrides
from candelabra.distributed import environment
from candelabra.distributed.rendezvous import NoAddressError, rendezvous

LIMIT = timedelta(seconds=5)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "MASTER_ADDR": "a", "MASTER_PORT": "7", "PMI_RANK": "3", "PMI_SIZE": "9"},
            ("torchrun", 1, 4, 0, "a", 7),
        ),
        ({"PMI_RANK": "2", "PMI_SIZE": "3", "MPI_LOCALRANKID": "1"}, ("PMI", 2, 3, 1, None, None)),
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "MASTER_ADDR": "a"},
            ("Open MPI", 2, 3, 0, "a", None),
        ),
        (
            {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_NODELIST": "n[01-02]", "SLURM_JOB_ID": "20007"},
            ("Slurm", 5, 8, 1, "n01", 15007),
        ),
        ({"PMIX_RANK": "1", "PMIX_SIZE": "2"}, ("PMIx", 1, 2, None, None, None)),
        ({}, ("nobody", None, None, None, None, None)),
    ],
    ids=["torchrun", "pmi", "openmpi", "slurm", "pmix", "nothing"],
)  # fmt: skip
def test_launchers(variables, expected):
    found = environment.launch(variables)
    assert (found.source, found.rank, found.world_size, found.local_rank, found.address, found.port) == expected


def test_a_variable_that_is_no_number():
    with pytest.raises(ValueError, match="RANK is no number: 'one'"):
        environment.launch({"RANK": "one"})


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08,10-11]-x,m", ["n08-x", "n10-x", "n11-x", "m"]),
        ("r[1-2]c[1-2]", ["r1c1", "r1c2", "r2c1", "r2c2"]),
    ],
)
def test_slurm_hosts(text, hosts):
    assert environment.expand_hosts(text) == hosts


def test_local_rank(monkeypatch):
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", "RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    assert dist.get_node_local_rank(fallback_rank=3) == 3
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert dist.get_node_local_rank(fallback_rank=3) == 2
    assert not dist.is_torchelastic_launched()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    assert dist.is_torchelastic_launched()


@pytest.fixture
def bare(monkeypatch):
    for name in (
        "RANK",
        "WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_USE_AGENT_STORE",
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_missing_variables_are_named(bare):
    with pytest.raises(ValueError, match="RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT expected"):
        dist.init_process_group("fake")
    bare.setenv("RANK", "0")
    with pytest.raises(ValueError, match="variable WORLD_SIZE, MASTER_ADDR, MASTER_PORT expected"):
        dist.init_process_group("mpi")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("ftp://host:1", "No rendezvous handler for ftp://"),
        ("tcp://127.0.0.1?rank=0&world_size=1", "port number missing"),
        ("tcp://127.0.0.1:1", "rank parameter missing"),
        ("tcp://127.0.0.1:1?rank=0", "world_size parameter missing"),
        ("file://?rank=0&world_size=1", "path missing"),
    ],
)
def test_wrong_methods(bare, method, message):
    with pytest.raises(ValueError, match=message):
        dist.init_process_group("mpi", method)


def test_methods(bare, tmp_path):
    store, rank, size = rendezvous(f"file://{tmp_path}/meeting?world_size=2", 1, -1, LIMIT)
    assert (type(store), rank, size) == (dist.FileStore, 1, 2)
    master = dist.TCPStore("127.0.0.1", 0, is_master=True)
    store, rank, size = rendezvous(f"tcp://127.0.0.1:{master.port}?rank=1&world_size=2", -1, -1, LIMIT)
    store.set("key", "value")
    assert (master.get("key"), rank, size) == (b"value", 1, 2)
    for name, value in {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(master.port),
    }.items():
        bare.setenv(name, value)
    bare.setenv("TORCHELASTIC_RESTART_COUNT", "3")
    store, rank, size = rendezvous("env://", -1, -1, LIMIT)
    store.set("key", "other")
    assert (master.get("worker/attempt_3/key"), rank, size) == (b"other", 1, 2)
    master.close()


def test_mpiexec_tells_no_address(bare):
    bare.setenv("PMI_RANK", "0")
    bare.setenv("PMI_SIZE", "2")
    with pytest.raises(NoAddressError):
        rendezvous("env://", -1, -1, LIMIT)


def test_other_classes_take_over_collectives():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert dist.all_reduce(Foreign()) is dist.all_reduce
    assert dist.all_gather([Foreign()], Foreign()) is dist.all_gather
    assert {dist.send, dist.broadcast} <= set(overrides.get_testing_overrides())
