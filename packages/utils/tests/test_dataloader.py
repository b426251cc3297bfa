"""Test the DataLoader: order, randomness, shared memory, killed workers, and resuming an epoch."""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import loading_datasets as datasets

import candelabra
from candelabra.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

pytestmark = pytest.mark.host_only("worker processes are forked, which the runtime of a device does not survive")

WORKERS = [0, 1, 2]


def generator(seed=0):
    return candelabra.Generator().manual_seed(seed)


def numbers(loader):
    return [batch[0].tolist() for batch in loader]


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, within=3.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_in_order(workers):
    batches = list(DataLoader(datasets.Squares(7), batch_size=3, num_workers=workers))
    assert [batch[0].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[1][1].tolist() == [[9.0] * 3, [16.0] * 3, [25.0] * 3]
    assert len(list(DataLoader(datasets.Squares(7), batch_size=3, num_workers=workers, drop_last=True))) == 2
    assert [one[0] for one in DataLoader(datasets.Squares(3), batch_size=None, num_workers=workers)] == [0, 1, 2]
    assert list(DataLoader(datasets.Squares(0), num_workers=workers)) == []


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_start_methods(context):
    loader = DataLoader(datasets.Squares(4), batch_size=2, num_workers=1, multiprocessing_context=context)
    assert numbers(loader) == [[0, 1], [2, 3]]
    loader = DataLoader(
        datasets.Squares(2), num_workers=1, multiprocessing_context=multiprocessing.get_context(context)
    )
    assert loader.multiprocessing_context.get_start_method() == context


def test_order_is_the_same_for_any_number_of_workers():
    orders = [
        numbers(DataLoader(datasets.Squares(), 3, shuffle=True, num_workers=n, generator=generator(3))) for n in WORKERS
    ]
    assert orders[0] == orders[1] == orders[2]
    assert sorted(flat(orders[0])) == list(range(20)) != flat(orders[0])
    found = []
    for workers in WORKERS:
        candelabra.manual_seed(5)
        loader = DataLoader(datasets.Squares(), 3, shuffle=True, num_workers=workers, persistent_workers=workers == 2)
        found.append([numbers(loader), numbers(loader)])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1]


def test_chance_in_workers_follows_from_the_seed():
    def draw(workers, seed=1, **options):
        loader = DataLoader(datasets.Chance(8), 2, num_workers=workers, generator=generator(seed), **options)
        return [[part.tolist() for part in batch] for batch in loader]

    assert draw(2) == draw(2)
    assert draw(2) != draw(2, seed=2)
    columns = list(zip(*draw(2), strict=True))
    assert len({x for batch in columns[1] for x in batch}) == len({x for batch in columns[2] for x in batch}) == 8
    whole = [draw(workers, seed_each_batch=True) for workers in WORKERS]
    assert whole[0] == whole[1] == whole[2]
    seeded = draw(2, worker_init_fn=datasets.reseed)
    expected = []
    for number in range(2):
        chance = random.Random(100 + number)
        expected.append([chance.random() for _ in range(4)])
    assert seeded[0][1] + seeded[2][1] == expected[0]
    assert seeded[1][1] + seeded[3][1] == expected[1]


def test_seeding_batches_here_leaves_the_generators_alone():
    candelabra.manual_seed(0)
    np.random.seed(0)
    loader = iter(DataLoader(datasets.Chance(4), 2, generator=generator(), seed_each_batch=True))
    before = candelabra.get_rng_state().tolist(), np.random.get_state()[1].tolist()
    next(loader)
    assert (candelabra.get_rng_state().tolist(), np.random.get_state()[1].tolist()) == before


@pytest.mark.parametrize("workers", WORKERS)
def test_tensor_dataset(workers):
    x, y = candelabra.arange(40.0).reshape(10, 4), candelabra.arange(10)
    for dataset, expected in ((TensorDataset(x, y), range(10)), (Subset(TensorDataset(x, y), [5, -1, 2]), [5, 9, 2])):
        rows = [
            row
            for batch in DataLoader(dataset, 4, num_workers=workers)
            for row in zip(batch[0].tolist(), batch[1].tolist(), strict=True)
        ]
        assert rows == [(list(map(float, range(4 * n, 4 * n + 4))), n) for n in expected]
    with pytest.raises(IndexError):
        list(DataLoader(TensorDataset(x), batch_sampler=[[0, 10]], num_workers=workers))


@pytest.mark.parametrize("workers", WORKERS)
def test_streams(workers):
    found = [batch.tolist() for batch in DataLoader(datasets.Stream(), 3, num_workers=workers)]
    assert sorted(flat(found)) == list(range(10))
    if workers == 2:
        assert found == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    full = [batch.tolist() for batch in DataLoader(datasets.Stream(), 3, num_workers=workers, drop_last=True)]
    assert all(len(batch) == 3 for batch in full)
    assert sorted(DataLoader(datasets.Stream(), None, num_workers=workers)) == list(range(10))


class TooLong(IterableDataset):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter(range(4))


def test_stream_longer_than_said():
    loader = DataLoader(TooLong(), batch_size=1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="Length of IterableDataset TooLong was reported to be 2"):
        assert len(list(loader)) == 4


def test_batches_are_shared_memory_and_stay_as_they_are():
    loader = DataLoader(datasets.Squares(60), 2, num_workers=2)
    kept = []
    for index, (first, second) in enumerate(loader):
        assert second.is_shared()
        if index % 3 == 0:
            kept.append((index, first, second[1:]))
        del first, second
    for index, first, second in kept:
        assert first.tolist() == [2 * index, 2 * index + 1]
        assert second.tolist() == [[float((2 * index + 1) ** 2)] * 3]


def test_what_a_worker_keeps_of_its_batches_stays_as_it_is():
    sums = [
        told for _, told in DataLoader(datasets.Squares(40), 2, num_workers=1, collate_fn=datasets.collate_and_keep)
    ]
    assert sums == [3.0] * 20


def test_batches_passed_on_stay_as_they_are():
    import candelabra.multiprocessing as mp

    here, there = mp.Pipe()
    batches = iter(DataLoader(datasets.Squares(60), 2, num_workers=1))
    here.send(next(batches)[1])
    received = there.recv()
    rest = sum(1 for _ in batches)
    assert rest == 29
    assert received.tolist() == [[0.0] * 3, [1.0] * 3]


def test_batches_in_a_fork_stay_as_they_are():
    batches = iter(DataLoader(datasets.Squares(60), 2, num_workers=1))
    held = next(batches)[1]
    read, write = os.pipe()
    go_read, go_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go_read, 1)
        os.write(write, b"1" if held.tolist() == [[0.0] * 3, [1.0] * 3] else b"0")
        os._exit(0)
    del held
    assert sum(1 for _ in batches) == 29
    os.write(go_write, b"x")
    assert os.read(read, 1) == b"1"
    os.waitpid(child, 0)
    for end in (read, write, go_read, go_write):
        os.close(end)


def test_no_descriptor_is_left():
    def run():
        for batch in DataLoader(datasets.Squares(), 4, num_workers=2):
            del batch

    run()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run()
    assert len(os.listdir("/proc/self/fd")) == before


def test_persistent_workers():
    loader = DataLoader(datasets.Pid(8), 2, num_workers=2, persistent_workers=True)
    first, second = ({pid for batch in loader for pid in batch.tolist()} for _ in range(2))
    assert first == second
    assert len(first) == 2
    it = iter(loader)
    next(it)
    assert len(list(loader)) == 4, "an epoch left in its middle does not disturb the next"
    del it, loader
    assert gone(first)


@pytest.mark.parametrize("kind", [ValueError, KeyError, ZeroDivisionError])
def test_exception_of_a_worker(kind):
    loader = DataLoader(datasets.Raises(kind("bad sample")), 2, num_workers=2)
    with pytest.raises(kind, match="in DataLoader worker process 0") as raised:
        list(loader)
    assert "bad sample" in str(raised.value)
    assert "loading_datasets.py" in str(raised.value)
    assert "raise self.error" in str(raised.value)


def test_other_batches_come_after_an_exception():
    it = iter(DataLoader(datasets.Raises(ValueError("x"), 8), 2, num_workers=2))
    assert [next(it).tolist(), next(it).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="x"):
        next(it)
    assert next(it).tolist() == [6, 7]
    with pytest.raises(StopIteration):
        next(it)


def test_exceptions_that_cannot_be_made_again():
    with pytest.raises(RuntimeError, match="Caught TwoArguments in DataLoader worker process 0"):
        list(DataLoader(datasets.Raises(datasets.TwoArguments(1, 2)), 2, num_workers=1))

    class Local(Exception):
        pass

    with pytest.raises(RuntimeError, match="Local"):
        list(DataLoader(datasets.Raises(Local("here")), 2, num_workers=1))
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        list(DataLoader(datasets.Unpicklable(), 2, num_workers=1, collate_fn=datasets.Unpicklable.collate))
    with pytest.raises(ValueError, match="no start of worker"):
        list(DataLoader(datasets.Squares(), 2, num_workers=1, worker_init_fn=datasets.raise_at_start))


def test_killed_worker():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+\) is killed by signal: Killed"):
        list(DataLoader(datasets.Killed(), 2, num_workers=2))
    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 3"):
        list(DataLoader(datasets.Exits(), 2, num_workers=2))


def test_killed_while_waiting_raises_before_the_item_comes():
    it = iter(DataLoader(datasets.Slow(), 1, num_workers=2))
    victim = it._processes[1].pid
    subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -9 {victim}"])
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=f"pid {victim}"):
        next(it)
    assert time.monotonic() - start < datasets.Slow.seconds
    assert not alive(victim)


def test_timeout():
    it = iter(DataLoader(datasets.Slow(), 1, num_workers=1, timeout=0.2))
    pids = [process.pid for process in it._processes]
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        next(it)
    assert gone(pids)


SCRIPT = """
    import os, sys, time
    sys.path.insert(0, {folder!r})
    from loading_datasets import Squares
    from candelabra.utils.data import DataLoader
    it = iter(DataLoader(Squares(1000000), 1, num_workers=2))
    next(it)
    print(*[process.pid for process in it._processes], flush=True)
    for batch in it:
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_no_process_is_left(number):
    script = textwrap.dedent(SCRIPT.format(folder=str(Path(__file__).parent)))
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    _, errors = process.communicate(timeout=10)
    assert gone(pids)
    if number == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1


def test_out_of_order():
    loader = DataLoader(datasets.SlowFirst(6), 1, num_workers=2, in_order=False)
    found = [int(batch) for batch in loader]
    assert sorted(found) == list(range(6))
    assert found[0] != 0


@pytest.mark.parametrize("after", [0, 1, 3, 7])
@pytest.mark.parametrize("workers", [(0, 0), (2, 0), (0, 2), (1, 2)])
def test_taken_up_in_the_middle(after, workers, tmp_path):
    def make(count, own):
        options = {"generator": generator(4)} if own else {}
        return DataLoader(datasets.Chance(20), 3, shuffle=True, num_workers=count, seed_each_batch=True, **options)

    def rows(loader):
        return [[part.tolist() for part in batch] for batch in loader]

    for own in (True, False):
        candelabra.manual_seed(9)
        loader = make(workers[0], own)
        list(loader)
        it = iter(loader)
        for _ in range(after):
            next(it)
        state = loader.state_dict()
        between = candelabra.get_rng_state()
        expected = [rows(it), rows(loader)]
        candelabra.save(state, tmp_path / "state")
        candelabra.manual_seed(1234)
        other = make(workers[1], own)
        other.load_state_dict(candelabra.load(tmp_path / "state"))
        assert other.state_dict()["batches"] == after
        candelabra.set_rng_state(between)
        assert [rows(other), rows(other)] == expected


def test_streams_are_taken_up():
    loader = DataLoader(datasets.Stream(12), 2, num_workers=2)
    it = iter(loader)
    next(it), next(it), next(it)
    state = loader.state_dict()
    other = DataLoader(datasets.Stream(12), 2, num_workers=2)
    other.load_state_dict(state)
    assert [batch.tolist() for batch in other] == [batch.tolist() for batch in it]
    with pytest.raises(ValueError, match="no state of a DataLoader"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="0 generators and this loader 1"):
        DataLoader(datasets.Squares(), shuffle=True, generator=generator()).load_state_dict(state)


def test_samplers():
    data = datasets.Squares(6)
    assert numbers(DataLoader(data, 2, sampler=[5, 3, 1])) == [[5, 3], [1]]
    assert numbers(DataLoader(data, batch_sampler=[[0, 5], [1]])) == [[0, 5], [1]]
    assert numbers(
        DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data, generator=generator()), 4, True))
    ) != [[0, 1, 2, 3]]
    assert sorted(flat(numbers(DataLoader(data, 4, sampler=SubsetRandomSampler([1, 4]))))) == [1, 4]
    assert numbers(DataLoader(data, 4, sampler=WeightedRandomSampler([0, 0, 1, 0, 0, 0], 3))) == [[2, 2, 2]]


OPTIONS = [
    ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
    ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
    ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ({"sampler": [0], "shuffle": True}, ValueError, "sampler option is mutually exclusive with shuffle"),
    ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
    ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
    ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
    ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process loading"),
    ({"multiprocessing_context": "run", "num_workers": 1}, ValueError, "should specify a valid start method"),
    ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "should be a valid context object"),
]


@pytest.mark.parametrize(("options", "kind", "message"), OPTIONS)
def test_options_that_contradict(options, kind, message):
    with pytest.raises(kind, match=message):
        DataLoader(datasets.Squares(), **options)


def test_options_of_streams_and_attributes(monkeypatch):
    for name in ("shuffle", "sampler", "batch_sampler"):
        with pytest.raises(ValueError, match=f"IterableDataset: expected unspecified {name} option"):
            DataLoader(datasets.Stream(), **{name: True if name == "shuffle" else [0]})
    loader = DataLoader(datasets.Squares())
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    assert len(DataLoader(datasets.Squares(7), 2)) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Our suggested max number of worker"):
            DataLoader(datasets.Squares(), num_workers=10000)
    monkeypatch.setattr(candelabra.accelerator, "is_available", lambda: False)  # even if this machine has one
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert len(list(DataLoader(datasets.Squares(2), pin_memory=True))) == 2


Point = collections.namedtuple("Point", "x y")


def test_default_collate():
    batch = default_collate([Point(np.float32(1), {"a": "s"}), Point(np.float32(2), {"a": "t"})])
    assert isinstance(batch, Point)
    assert batch.x.dtype == candelabra.float32
    assert batch.y == {"a": ["s", "t"]}
    stacked = default_collate([np.arange(3), np.arange(3, 6)])
    assert stacked.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert default_collate([True, False]).dtype == candelabra.bool
    assert default_collate([1.0, 2.0]).dtype == candelabra.float64
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists; found"):
        default_collate([object()])
    with pytest.raises(RuntimeError):
        default_collate([candelabra.zeros(2), candelabra.zeros(3)])
