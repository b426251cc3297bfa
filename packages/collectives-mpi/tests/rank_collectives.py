"""Checks of collectives with NumPy, in each rank."""

from __future__ import annotations

import itertools
import os

import numpy as np
from checks import Ranks, check, raised, run_checks

import candelabra
from candelabra import communication

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
HALVES = ["float16", "bfloat16"]
REALS = [*HALVES, "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *REALS, *COMPLEX]
#: One element, and an odd number of vectors.
COUNTS = (1, 1037)
#: Of several pieces of 1 MB, the last of which is shorter.
LONG = [
    ("int8", "max", 2_200_001),
    ("float16", "sum", 1_100_001),
    ("float32", "mean", 550_001),
    ("complex128", "sum", 140_001),
]
NUMPY = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


def operations(dtype: str) -> list[str]:
    if dtype == "bool":
        return ["sum", "product", "min", "max", "band", "bor", "bxor"]
    if dtype in INTEGERS:
        return ["sum", "product", "min", "max", "mean", "band", "bor", "bxor"]
    return ["sum", "product", "mean"] if dtype in COMPLEX else ["sum", "product", "min", "max", "mean"]


def data(dtype: str, count: int, rank: int) -> np.ndarray:
    """Return what a rank contributes: whole numbers that every dtype and reduction has exactly."""
    random = np.random.default_rng([count, rank])
    values = random.integers(0, 2 if dtype == "bool" else 5, count)
    if dtype in COMPLEX:
        return (values + 1j * random.integers(0, 5, count)).astype(dtype)
    return values.astype("float32" if dtype == "bfloat16" else dtype)


def tensor_of(values: np.ndarray, dtype: str) -> candelabra.Tensor:
    return candelabra.from_numpy(values.copy()).to(getattr(candelabra, dtype))


def array_of(tensor: candelabra.Tensor) -> np.ndarray:
    return (tensor.float() if tensor.dtype == candelabra.bfloat16 else tensor).numpy()


def reduced(dtype: str, op: str, parts: list[np.ndarray]) -> np.ndarray:
    if dtype == "bool":
        function = {"sum": np.logical_or, "max": np.logical_or, "product": np.logical_and, "min": np.logical_and}
        return function.get(op, NUMPY.get(op)).reduce(parts)
    if op != "mean":
        return NUMPY[op].reduce(parts).astype(parts[0].dtype)
    total = np.add.reduce(parts)
    if dtype in INTEGERS:
        return total // len(parts)
    mean = (total / len(parts)).astype(parts[0].dtype)
    return array_of(tensor_of(mean, dtype)) if dtype == "bfloat16" else mean


def cases(ranks: Ranks) -> list[tuple[str, str, int]]:
    """Return the dtypes, reductions and counts: on more than two ranks, every second of them."""
    every = [(dtype, op) for dtype in DTYPES for op in operations(dtype)][:: 1 if ranks.size == 2 else 2]
    return [(dtype, op, count) for (dtype, op), count in itertools.product(every, COUNTS)] + LONG


def require_equal(dtype: str, found: candelabra.Tensor, expected: np.ndarray) -> None:
    assert found.dtype == getattr(candelabra, dtype)
    np.testing.assert_allclose(array_of(found), expected, rtol=1e-6 if dtype in COMPLEX else 0)


@check
def all_reduce(ranks: Ranks) -> None:
    for dtype, op, count in cases(ranks):
        parts = [data(dtype, count, rank) for rank in range(ranks.size)]
        expected = reduced(dtype, op, parts)
        send = tensor_of(parts[ranks.rank], dtype)
        receive = candelabra.empty_like(send)
        ranks.world.run("all_reduce", send, receive, op)
        require_equal(dtype, receive, expected)
        ranks.world.run("all_reduce", send, send, op)
        require_equal(dtype, send, expected)


@check
def all_reduce_without_shared_memory(ranks: Ranks) -> None:
    os.environ["CANDELABRA_MPI_SHARED_MEMORY"] = "0"
    group = ranks.engine.communicator(range(ranks.size), 20, "through MPI", 20.0)
    del os.environ["CANDELABRA_MPI_SHARED_MEMORY"]
    for dtype, op, count in LONG:
        parts = [data(dtype, count, rank) for rank in range(ranks.size)]
        tensor = tensor_of(parts[ranks.rank], dtype)
        group.run("all_reduce", tensor, tensor, op)
        require_equal(dtype, tensor, reduced(dtype, op, parts))
    group.close()


@check
def all_reduce_has_the_same_bits_on_all_ranks(ranks: Ranks) -> None:
    count = 300_001
    tensor = tensor_of(np.random.default_rng(ranks.rank).standard_normal(count).astype("float32"), "float32")
    ranks.world.run("all_reduce", tensor, tensor)
    everyone = candelabra.empty(ranks.size * count)
    ranks.world.run("all_gather", tensor, everyone)
    for part in everyone.numpy().reshape(ranks.size, count):
        np.testing.assert_array_equal(part, tensor.numpy())


@check
def reduce(ranks: Ranks) -> None:
    for number, (dtype, op, count) in enumerate(cases(ranks)):
        parts = [data(dtype, count, rank) for rank in range(ranks.size)]
        send = tensor_of(parts[ranks.rank], dtype)
        receive = send if number % 2 else candelabra.empty_like(send)
        root = number % ranks.size
        ranks.world.run("reduce", send, receive, op, root)
        if ranks.rank == root:
            require_equal(dtype, receive, reduced(dtype, op, parts))
        elif receive is send:
            require_equal(dtype, send, parts[ranks.rank])


@check
def reduce_scatter(ranks: Ranks) -> None:
    for number, (dtype, op, count) in enumerate(cases(ranks)):
        parts = [data(dtype, count * ranks.size, rank) for rank in range(ranks.size)]
        send = tensor_of(parts[ranks.rank], dtype)
        own = slice(ranks.rank * count, (ranks.rank + 1) * count)
        receive = send[own] if number % 2 else candelabra.empty(count, dtype=send.dtype)
        ranks.world.run("reduce_scatter", send, receive, op)
        require_equal(dtype, receive, reduced(dtype, op, parts)[own])


@check
def broadcast(ranks: Ranks) -> None:
    every = [*itertools.product(DTYPES, COUNTS), *((dtype, count) for dtype, _, count in LONG)]
    for (dtype, count), root in itertools.product(every, range(ranks.size)):
        send = tensor_of(data(dtype, count, ranks.rank), dtype)
        receive = send if root else candelabra.empty_like(send)
        ranks.world.run("broadcast", send, receive, peer=root)
        require_equal(dtype, receive, data(dtype, count, root))


@check
def all_gather(ranks: Ranks) -> None:
    for dtype, count in itertools.product(DTYPES, COUNTS):
        expected = np.concatenate([data(dtype, count, rank) for rank in range(ranks.size)])
        send = tensor_of(data(dtype, count, ranks.rank), dtype)
        receive = candelabra.empty(count * ranks.size, dtype=send.dtype)
        ranks.world.run("all_gather", send, receive)
        require_equal(dtype, receive, expected)
        for place in (ranks.rank, ranks.size - 1 - ranks.rank):  # in its own part, and in another's
            receive = candelabra.zeros(count * ranks.size, dtype=send.dtype)
            part = receive[place * count : (place + 1) * count]
            part.copy_(send)
            ranks.world.run("all_gather", part, receive)
            require_equal(dtype, receive, expected)


@check
def all_to_all(ranks: Ranks) -> None:
    for dtype, count in itertools.product(DTYPES, COUNTS):
        parts = [data(dtype, count * ranks.size, rank) for rank in range(ranks.size)]
        own = slice(ranks.rank * count, (ranks.rank + 1) * count)
        send = tensor_of(parts[ranks.rank], dtype)
        expected = np.concatenate([part[own] for part in parts])
        receive = candelabra.empty_like(send)
        ranks.world.run("all_to_all", send, receive)
        require_equal(dtype, receive, expected)
        ranks.world.run("all_to_all", send, send)
        require_equal(dtype, send, expected)


@check
def send_and_receive(ranks: Ranks) -> None:
    for dtype, count in itertools.product(DTYPES, COUNTS):
        tensor = tensor_of(data(dtype, count, ranks.rank), dtype)
        if ranks.rank == 0:
            for peer in ranks.others:
                ranks.world.run("send", tensor, None, peer=peer)
        else:
            ranks.world.run("receive", None, tensor, peer=0)
            require_equal(dtype, tensor, data(dtype, count, 0))


@check
def exchange_with_tags(ranks: Ranks) -> None:
    count, right, left = 5, (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    sends = [candelabra.full((count,), 10.0 * ranks.rank + tag) for tag in range(3)]
    receives = [candelabra.zeros(count) for _ in range(3)]
    # In the order opposite to that of the sends: the tag tells which is which.
    wanted = [(receives[tag], left, tag) for tag in (2, 1, 0)]
    request = ranks.world.exchange([], wanted)
    ranks.world.exchange([(sends[tag], right, tag) for tag in range(3)], []).wait()
    request.wait()
    assert request.done() and request.source == left
    assert [each[0].item() for each in receives] == [10.0 * left + tag for tag in range(3)]


@check
def receive_from_any_rank(ranks: Ranks) -> None:
    if ranks.rank == 0:
        sources = set()
        for _ in ranks.others:
            tensor = candelabra.zeros(3, dtype=candelabra.int64)
            request = ranks.world.exchange([], [(tensor, -1, 7)])
            request.wait()
            assert tensor.tolist() == [request.source] * 3
            sources.add(request.source)
        assert sources == set(ranks.others)
    else:
        sent = candelabra.full((3,), ranks.rank, dtype=candelabra.int64)
        ranks.world.exchange([(sent, 0, 7)], []).wait()


@check
def halves_round_to_nearest(ranks: Ranks) -> None:
    for dtype in HALVES:
        parts = [candelabra.from_numpy(np.random.default_rng(rank).standard_normal(1003).astype("float32"))
                 for rank in range(2)]  # fmt: skip
        parts = [part.to(getattr(candelabra, dtype)) for part in parts]
        expected = parts[0] + parts[1]
        found = parts[ranks.rank].clone() if ranks.rank < 2 else candelabra.zeros_like(parts[0])
        ranks.world.run("all_reduce", found, found)
        assert (found == expected).all()
        special = candelabra.tensor([float("inf"), float("nan"), -0.0, 1e-6 * ranks.rank], dtype=found.dtype)
        ranks.world.run("all_reduce", special, special)
        assert special[0].item() == float("inf") and special[1].isnan().item() and special[2].item() == 0.0


@check
def empty_tensors(ranks: Ranks) -> None:
    empty = candelabra.zeros(0)
    for kind in ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"):
        ranks.world.run(kind, empty, empty.clone() if kind == "all_to_all" else empty)
    ranks.world.run("barrier")


@check
def writes_count_as_changes(ranks: Ranks) -> None:
    tensor = candelabra.ones(3)
    version = tensor._version
    ranks.world.run("all_reduce", tensor, tensor)
    assert tensor._version == version + 1 and tensor.tolist() == [float(ranks.size)] * 3


@check
def requests_run_in_order(ranks: Ranks) -> None:
    tensor = candelabra.ones(300_000)  # of several pieces
    small = candelabra.ones(2)
    requests = [ranks.world.start("all_reduce", tensor, tensor), ranks.world.start("all_reduce", small, small)]
    ranks.world.run("all_reduce", tensor, tensor)
    requests[1].wait()
    requests[1].wait()
    requests[0].wait(5.0)
    assert all(request.done() for request in requests)
    assert (tensor == float(ranks.size) ** 2).all() and small.tolist() == [float(ranks.size)] * 2


@check
def the_thread_carries_requests_forward(ranks: Ranks) -> None:
    import time

    tensor = candelabra.ones(300_000)
    request = ranks.world.start("all_reduce", tensor, tensor)
    end = time.monotonic() + 10
    while not request.done() and time.monotonic() < end:
        time.sleep(0.001)
    assert request.done()
    request.wait()
    assert (tensor == float(ranks.size)).all()


@check
def dropped_requests_finish(ranks: Ranks) -> None:
    for _ in range(20):
        ranks.world.start("all_reduce", *[candelabra.ones(1000)] * 2)
    last = candelabra.ones(1)
    ranks.world.run("all_reduce", last, last)
    assert last.item() == ranks.size


@check
def groups_of_ranks(ranks: Ranks) -> None:
    chosen = list(range(1, ranks.size))
    if ranks.rank in chosen:
        group = ranks.engine.communicator(chosen, 3, "some", 10.0)
        assert (group.rank, group.size, group.timeout) == (chosen.index(ranks.rank), len(chosen), 10.0)
        tensor = candelabra.ones(4)
        group.run("all_reduce", tensor, tensor)
        assert tensor.tolist() == [float(len(chosen))] * 4
        group.timeout = 5.0
        group.close()
        raised(RuntimeError, "was closed", group.run, "all_reduce", tensor, tensor)
    ranks.world.run("barrier")


@check
def groups_while_requests_run(ranks: Ranks) -> None:
    tensor = candelabra.ones(600_000)
    request = ranks.world.start("all_reduce", tensor, tensor)
    if ranks.rank == 0:
        request.wait()
    group = ranks.engine.communicator(range(ranks.size), 4, "all", 10.0)
    request.wait()
    group.close()
    assert (tensor == float(ranks.size)).all()


@check
def many_threads(ranks: Ranks) -> None:
    import threading

    groups = [ranks.engine.communicator(range(ranks.size), 10 + i, f"group {i}", 20.0) for i in range(3)]
    found = [candelabra.ones(1000) for _ in groups]

    def work(i: int) -> None:
        for _ in range(30):
            groups[i].run("all_reduce", found[i], found[i], "mean")
        groups[i].run("all_reduce", found[i], found[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(groups))]
    for thread in threads if ranks.rank else threads[::-1]:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((each == float(ranks.size)).all() for each in found)
    for group in groups:
        group.close()


@check
def what_is_refused(ranks: Ranks) -> None:
    run, ones = ranks.world.run, candelabra.ones
    tensor = ones(2, 3)
    raised(ValueError, "must be contiguous", run, "all_reduce", tensor.mT, tensor.mT)
    raised(ValueError, "not the right number", run, "all_gather", tensor, tensor)
    raised(ValueError, "not the right number", run, "all_reduce", tensor, ones(5))
    raised(ValueError, "not the right number", run, "reduce_scatter", tensor, tensor)
    raised(ValueError, "not the right number", run, "all_to_all", tensor, ones(7))
    raised(ValueError, "one dtype", run, "all_reduce", tensor, tensor.double())
    raised(TypeError, "must be a Tensor", run, "all_reduce", [1.0], [1.0])
    raised(ValueError, f"rank {ranks.size} is not among", run, "broadcast", tensor, tensor, "sum", ranks.size)
    raised(ValueError, "rank -1 is not among", run, "send", tensor, None, "sum", -1)
    raised(
        NotImplementedError,
        "complex64 has no min and max",
        run,
        "all_reduce",
        *[tensor.to(candelabra.complex64)] * 2,
        "max",
    )
    raised(NotImplementedError, "bool has no mean", run, "all_reduce", *[tensor.bool()] * 2, "mean")
    raised(NotImplementedError, "float32 has no bitwise", ranks.world.start, "all_reduce", tensor, tensor, "bxor")
    raised(RuntimeError, "requires grad", run, "all_reduce", tensor, ones(2, 3).requires_grad_())
    run("all_reduce", tensor, tensor)  # the communicator is still usable


@check
def the_communicators_of_the_core(ranks: Ranks) -> None:
    assert communication.is_available("cpu") and communication.version("cpu") == ("mpi", 500)
    unique = communication.unique_id("cpu")
    raised(ValueError, "not rank 0 of 9", communication.Communicator, "cpu", unique, 0, 9)
    raised(ValueError, "the id is not one of", communication.Communicator, "cpu", bytes(128), ranks.rank, ranks.size)
    with communication.Communicator("cpu", unique, ranks.rank, ranks.size, timeout=10.0, name="core") as all_ranks:
        assert all_ranks.all_reduce(candelabra.ones(2)).tolist() == [float(ranks.size)] * 2
        assert all_ranks.all_reduce(candelabra.tensor(1 << ranks.rank), "bor").item() == 2**ranks.size - 1
        half = all_ranks.split(ranks.rank % 2, key=-ranks.rank, timeout=10.0, name="half")
        assert half is not None and half.size == len(range(ranks.rank % 2, ranks.size, 2))
        assert half.rank == half.size - 1 - ranks.rank // 2
        assert half.all_reduce(candelabra.ones(1)).item() == half.size
        half.close()
        assert (all_ranks.split(None) is None) or ranks.size == 0
        with communication.group("cpu"):
            for peer in ranks.others:
                all_ranks.send(candelabra.full((2,), float(ranks.rank)), peer)
            received = [all_ranks.receive(candelabra.zeros(2), peer) for peer in ranks.others]
        assert [each[0].item() for each in received] == [float(peer) for peer in ranks.others]
        all_ranks.barrier()
        all_ranks.query()
        all_ranks.wait(5.0)
    raised(RuntimeError, "was closed", all_ranks.all_reduce, candelabra.ones(1))


@check
def starting_again(ranks: Ranks) -> None:
    import candelabra_collectives_mpi as mpi

    assert mpi.start() == (ranks.rank, ranks.size)
    raised(RuntimeError, f"with rank {ranks.rank} of {ranks.size}", mpi.Engine().start, ranks.rank, 99, {}, None)
    assert "MPI" in ranks.engine.version() and ranks.engine.rank_and_size() == (ranks.rank, ranks.size)


if __name__ == "__main__":
    run_checks()
