"""Test collectives between processes: results, and ranks that are missing, wrong, dead or late.

Each rank is a process. Needs as many GPUs as ranks, or the emulated device, on which the processes
of a machine communicate through a folder.

With as many GPUs as ranks, or with the emulated device, on which processes of one machine meet in a
folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import candelabra

#: The start of every rank's program; the id is passed through a file.
PRELUDE = """
import os, sys, time
from pathlib import Path
import candelabra
from candelabra import communication
rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
device = candelabra.device("cuda", rank % candelabra.cuda.device_count())
candelabra.cuda.set_device(device)
def the_id(name="id"):
    path = folder / name
    if rank == 0:
        (folder / "unfinished").write_bytes(communication.unique_id("cuda"))
        (folder / "unfinished").rename(path)
    while not path.exists():
        time.sleep(0.005)
    return path.read_bytes()
def meet():
    # What comes next, under a short time, shall not pay for an interpreter that starts late.
    (folder / f"here.{rank}").write_text("")
    while any(not (folder / f"here.{other}").exists() for other in range(size)):
        time.sleep(0.005)
def communicator(timeout=60.0, **others):
    return communication.Communicator(device, the_id(), rank, size, timeout=timeout, **others)
def raised(call):
    try:
        call()
        candelabra.cuda.synchronize()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("nothing was raised")
"""


@pytest.fixture
def ranks(cuda: candelabra.device, on_emulation: bool, tmp_path: Path):
    """Start a program in several processes and wait for all: run(program, size=2, wait=True,
    **environment).
    """
    begun: list[subprocess.Popen[str]] = []

    def run(program: str, size: int = 2, wait: bool = True, **environment: str) -> list[subprocess.Popen[str]]:
        if not on_emulation and candelabra.cuda.device_count() < size:
            pytest.skip(f"needs {size} GPUs")
        variables = {
            **os.environ,
            "CANDELABRA_EMULATION_NCCL": str(tmp_path),
            "CANDELABRA_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            **environment,
        }
        text = f"emulated = {on_emulation}\n" + PRELUDE + textwrap.dedent(program)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", text, str(rank), str(size), str(tmp_path)],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(size)
        ]
        begun.extend(processes)
        for process in processes if wait else ():
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 0, output
        return processes

    yield run
    for process in begun:
        if process.poll() is None:
            process.kill()
            process.communicate()


MODES = [{}, {"CANDELABRA_EMULATION_DEFERRED": "1"}]


@pytest.mark.parametrize("mode", MODES, ids=["at once", "deferred"])
def test_results(ranks, mode: dict[str, str]) -> None:
    ranks(
        """
        import numpy as np
        with communicator(name="all") as ranks:
            assert (ranks.rank, ranks.size, ranks.device) == (rank, size, device)
            for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint32", "uint64"):
                dtype = getattr(candelabra, dtype)
                mine = candelabra.tensor([1, 2, 3 + rank], dtype=dtype, device=device)
                for op, expected in (
                    ("sum", [3, 6, 12]), ("product", [1, 8, 60]), ("min", [1, 2, 3]), ("max", [1, 2, 5]), ("mean", [1, 2, 4]),
                ):
                    out = candelabra.empty_like(mine)
                    assert ranks.all_reduce(mine, op, out=out) is out
                    assert out.tolist() == expected, (dtype, op, out)
                assert mine.tolist() == [1, 2, 3 + rank]
                assert ranks.all_reduce(mine.clone()).tolist() == [3, 6, 12]
            for dtype in (candelabra.bool, candelabra.int16, candelabra.complex64, candelabra.float32, candelabra.uint16):
                mine = candelabra.tensor([rank, 1, 2], device=device).to(dtype)
                assert candelabra.equal(ranks.broadcast(mine.clone(), 1), candelabra.tensor([1, 1, 2], device=device).to(dtype))
                gathered = ranks.all_gather(candelabra.empty(size, 3, dtype=dtype, device=device), mine)
                assert candelabra.equal(gathered[rank], mine) and gathered[:, 1].tolist() == [1] * size
                received = ranks.all_to_all(candelabra.empty(size, 2, dtype=dtype, device=device), (candelabra.arange(2 * size, device=device) + rank).to(dtype))
                assert candelabra.equal(received[2], candelabra.tensor([2 * rank + 2, 2 * rank + 3], device=device).to(dtype))
            z = candelabra.tensor([1 + 2j * rank], device=device)
            assert ranks.all_reduce(z.clone()).tolist() == [3 + 6j] and ranks.all_reduce(z, "mean").tolist() == [1 + 2j]
            flags = candelabra.tensor([True, False, rank == 1], device=device)
            assert ranks.all_reduce(flags.clone()).tolist() == [True, False, True]
            assert ranks.all_reduce(flags.clone(), "product").tolist() == [True, False, False]
            out = candelabra.zeros(1, device=device)
            assert ranks.reduce(candelabra.full((1,), rank + 1.0, device=device), 2, "sum", out=out).tolist() == [6.0 if rank == 2 else 0.0]
            part = ranks.reduce_scatter(candelabra.zeros(2, device=device), candelabra.arange(6.0, device=device) * (rank + 1))
            assert part.tolist() == [6.0 * 2 * rank, 6.0 * (2 * rank + 1)]
            # in order with kernels before and after, and what is a part of another tensor
            x = candelabra.arange(1000.0, device=device)
            for _ in range(5):
                ranks.all_reduce(x[500:])
                x.div_(size)
            np.testing.assert_allclose(x[500:].cpu().numpy(), np.arange(500.0, 1000.0) / 1, rtol=1e-6)
            ranks.barrier()
            ranks.query()
            assert ranks.all_reduce(candelabra.empty(0, device=device)).tolist() == []
        """,
        size=3,
        **mode,
    )


@pytest.mark.parametrize("mode", MODES, ids=["at once", "deferred"])
def test_messages_and_groups(ranks, mode: dict[str, str]) -> None:
    ranks(
        """
        with communicator() as ranks:
            peer = 1 - rank
            if rank == 0:
                ranks.send(candelabra.arange(5, device=device), 1)
            else:
                assert ranks.receive(candelabra.zeros(5, dtype=candelabra.int64, device=device), 0).tolist() == [0, 1, 2, 3, 4]
            here = candelabra.empty(3, device=device)
            with communication.group(device):
                ranks.send(candelabra.full((3,), float(rank), device=device), peer)
                ranks.receive(here, peer)
            assert here.tolist() == [float(peer)] * 3
            # parts of different sizes, to oneself too
            parts = [candelabra.zeros(2 + each + rank, device=device) for each in range(2)]
            with communication.group(device):
                for each in range(2):
                    ranks.send(candelabra.full((2 + rank + each,), 10.0 * rank + each, device=device), each)
                    ranks.receive(parts[each], each)
            assert parts[peer].tolist() == [10.0 * peer + rank] * len(parts[peer]), parts
            a, b = candelabra.ones(2, device=device), candelabra.ones(3, device=device)
            with communication.group(device):
                ranks.all_reduce(a)
                ranks.all_reduce(b, "max")
            assert a.tolist() == [2.0, 2.0] and b.tolist() == [1.0, 1.0, 1.0]
            ranks.wait(60)
        """,
        **mode,
    )


def test_parts_of_the_ranks(ranks) -> None:
    ranks(
        """
        with communicator() as ranks:
            part = ranks.split(rank % 2 if rank < 3 else None, key=-rank, name="part")
            if rank == 3:
                assert part is None
            else:
                members = [2, 0] if rank % 2 == 0 else [1]
                assert part.size == len(members) and part.rank == members.index(rank) and part.name == "part"
                gathered = part.all_gather(candelabra.empty(part.size, dtype=candelabra.int64, device=device), candelabra.tensor([rank], device=device))
                assert gathered.tolist() == members
                part.close()
            assert ranks.all_reduce(candelabra.ones(1, device=device)).item() == 4
        """,
        size=4,
    )


def test_a_missing_rank(ranks) -> None:
    ranks(
        """
        the_id()
        if rank == 0:
            begun = time.monotonic()
            text = raised(lambda: communicator(timeout=0.5, name="alone"))
            assert "'alone' (rank 0 of 2): making it timed out after 500 ms" in text, text
            assert time.monotonic() - begun < 20
            assert candelabra.ones(2, device=device).sum().item() == 2
        """
    )


@pytest.mark.parametrize("mode", MODES, ids=["at once", "deferred"])
def test_a_late_rank(ranks, mode: dict[str, str]) -> None:
    # The device waits. The watchdog thread aborts the communicator, and the next call raises.
    ranks(
        """
        meet()
        ranks = communicator(timeout=4 if rank == 0 else 60, name="training")
        x = candelabra.ones(3, device=device)
        ranks.all_reduce(x)
        if rank == 0:
            ranks.all_reduce(x)  # nobody else does
            time.sleep(0.1)
            text = raised(lambda: candelabra.cuda.synchronize() or time.sleep(8))
            assert "'training' (rank 0 of 2): all_reduce (collective 2 of this rank) timed out after 4000 ms" in text, text
            assert "timed out" in raised(lambda: ranks.all_reduce(x)) and "timed out" in raised(ranks.query)
            ranks.close()
            assert "was closed" in raised(ranks.query)
            assert candelabra.ones(2, device=device).sum().item() == 2
            (folder / "done").write_text("")
        else:
            assert x.tolist() == [2.0] * 3
            while not (folder / "done").exists():
                time.sleep(0.01)
            ranks.abort()
        """,
        **mode,
    )


def test_waiting_with_a_time(ranks) -> None:
    ranks(
        """
        ranks = communicator(timeout=None)
        if rank == 0:
            x = candelabra.ones(3, device=device)  # kept: giving memory back may wait for the device
            ranks.all_reduce(x)
            text = raised(lambda: ranks.wait(0.3))
            assert "all_reduce (collective 1 of this rank) was not done after 300 ms" in text, text
            (folder / "done").write_text("")
        else:
            while not (folder / "done").exists():
                time.sleep(0.01)
            ranks.abort()
            assert "was aborted" in raised(ranks.query)
        """
    )


def test_a_rank_that_is_killed(ranks, tmp_path: Path) -> None:
    processes = ranks(
        """
        ranks = communicator(timeout=90)
        x = candelabra.ones(3, device=device)
        ranks.all_reduce(x)
        assert x.tolist() == [2.0] * 3
        (folder / f"ready.{rank}").write_text("")
        if rank == 1:
            time.sleep(100)
        begun = time.monotonic()
        text = raised(lambda: (ranks.all_reduce(x), ranks.wait()))
        assert "remote" in text, text
        assert time.monotonic() - begun < 60
        assert candelabra.ones(2, device=device).sum().item() == 2
        """,
        wait=False,
        CANDELABRA_EMULATION_NCCL_NOTICES="1",
    )
    end = time.monotonic() + 60
    while not all((tmp_path / f"ready.{rank}").exists() for rank in range(2)) and time.monotonic() < end:
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGKILL)
    output, _ = processes[0].communicate(timeout=100)
    assert processes[0].returncode == 0, output


def test_ranks_that_do_not_agree(ranks) -> None:
    ranks(
        """
        if not emulated:
            sys.exit(0)  # the library itself does not look
        ranks = communicator(timeout=60)
        text = raised(lambda: (ranks.all_reduce(candelabra.ones(2 + rank, device=device)), candelabra.cuda.synchronize(), ranks.wait()))
        assert "invalid usage" in text, text
        """
    )


def test_what_is_refused(ranks) -> None:
    ranks(
        """
        def refused(kind, text, call):
            try:
                call()
            except kind as error:
                assert text in str(error), error
            else:
                raise AssertionError(text)
        with communicator() as ranks:
            x = candelabra.ones(4, 4, device=device)
            refused(ValueError, "contiguous", lambda: ranks.all_reduce(x.mT))
            refused(ValueError, "device", lambda: ranks.all_reduce(candelabra.ones(2)))
            refused(ValueError, "one dtype", lambda: ranks.all_reduce(x, out=x.double()))
            refused(ValueError, "right number", lambda: ranks.all_gather(x, x))
            refused(ValueError, "right number", lambda: ranks.reduce_scatter(x, x))
            refused(ValueError, "parts of one size", lambda: ranks.all_to_all(candelabra.ones(3, device=device), candelabra.ones(3, device=device)))
            refused(ValueError, "must not be", lambda: ranks.all_to_all(x, x))
            refused(ValueError, "op must be one of sum, product, min, max, mean", lambda: ranks.all_reduce(x, "xor"))
            refused(ValueError, "rank 2 is not among the 2 ranks", lambda: ranks.broadcast(x, 2))
            refused(ValueError, "rank -1 is not among", lambda: ranks.send(x, -1))
            refused(TypeError, "must be a Tensor", lambda: ranks.all_reduce([1.0]))
            refused(NotImplementedError, "16 bits", lambda: ranks.all_reduce(x.to(candelabra.int16)))
            refused(NotImplementedError, "sum and mean only", lambda: ranks.all_reduce(x.to(candelabra.complex64), "max"))
            refused(NotImplementedError, "bools have no mean", lambda: ranks.all_reduce(x.bool(), "mean"))
            refused(RuntimeError, "requires grad", lambda: ranks.all_reduce(x.clone().requires_grad_()))
            refused(ValueError, "color must not be negative", lambda: ranks.split(-2))
            refused(ValueError, "128 bytes", lambda: communication.Communicator(device, b"short", 0, 1))
            refused(ValueError, "rank 3 is not among the 2 ranks", lambda: communication.Communicator(device, bytes(128), 3, 2))
            refused(ValueError, "timeout must be positive", lambda: ranks.wait(-1))
            import pickle
            refused(TypeError, "cannot be pickled", lambda: pickle.dumps(ranks))
            version = x._version
            ranks.all_reduce(x)
            assert x._version > version and x.sum().item() == 32.0
        ranks.close()
        refused(RuntimeError, "was closed", lambda: ranks.all_reduce(x))
        """
    )


def test_a_forked_child_cannot_use_it(ranks) -> None:
    ranks(
        """
        ranks = communicator()
        x = ranks.all_reduce(candelabra.ones(2, device=device)).cpu()
        child = os.fork()
        if child == 0:
            try:
                ranks.query()
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ranks.close()
        """
    )
