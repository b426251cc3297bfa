"""The program of one rank: ``rank.py LIBRARY WHAT SECONDS``, started by the library's launcher.

It measures the same for Candelabra and for PyTorch, by the names that both have. Rank 0 prints a
line of JSON.
"""

from __future__ import annotations

import importlib
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

#: Bytes of the tensors that are reduced.
SIZES = (4, 64 << 10, 1 << 20, 64 << 20)
CLIENTS = 1024
ROUNDS = 5
MARK = "RESULT "
#: What comes before the phase of a job in which a rank fails.
FAILS = "fails-"
BACKENDS = {"candelabra": "mpi", "torch": "gloo"}


def main() -> None:
    """Measure what the command line names."""
    library, what, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    xp = importlib.import_module(library)
    imported = time.perf_counter()
    dist = importlib.import_module(f"{library}.distributed")
    xp.set_num_threads(1)
    if what.startswith(FAILS):
        # It lies beside this program, which is no part of a package when it runs.
        told = importlib.import_module("failures").meet_one(xp, dist, what.removeprefix(FAILS), *sys.argv[4:])
        sys.stdout.write(f"{MARK}{json.dumps(told)}\n")
        sys.stdout.flush()
        return
    dist.init_process_group(BACKENDS[library])
    if what == "start":
        dist.all_reduce(xp.ones(1))
        found: Any = time.perf_counter() - imported
    elif what == "collectives":
        found = {str(size): all_reduce(xp, dist, size, seconds) for size in SIZES}
    elif what == "store":
        found = meet(dist, library)
    else:
        found = step(xp, dist, library, what, seconds)
    slowest = xp.tensor([found], dtype=xp.float64) if isinstance(found, float) else None
    if slowest is not None:
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        found = slowest.item()
    if dist.get_rank() == 0:
        sys.stdout.write(f"{MARK}{json.dumps(found)}\n")
        sys.stdout.flush()
    dist.barrier()
    dist.destroy_process_group()


def timed(dist: Any, call: Callable[[], Any], seconds: float) -> float:
    """Return the seconds of a call: the median of rounds, in which all ranks call it as often."""
    call()
    start = time.perf_counter()
    call()
    box = [max(1, int(seconds / (time.perf_counter() - start)))]
    dist.broadcast_object_list(box, src=0)
    rounds = []
    for _ in range(ROUNDS):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(box[0]):
            call()
        rounds.append((time.perf_counter() - start) / box[0])
    return statistics.median(rounds)


def all_reduce(xp: Any, dist: Any, size: int, seconds: float) -> float:
    """Return the seconds of an all_reduce in place."""
    x = xp.zeros(size // 4)
    return timed(dist, lambda: dist.all_reduce(x), seconds)


def meet(dist: Any, library: str) -> float:
    """Return the seconds in which many clients connect to a store and wait for one another."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) if rank == 0 else None
    box = [server.port if server is not None else 0]
    dist.broadcast_object_list(box, src=0)
    dist.barrier()
    start = time.perf_counter()
    clients = [
        dist.TCPStore("127.0.0.1", box[0], is_master=False, wait_for_workers=False) for _ in range(CLIENTS // ranks)
    ]
    for client in clients:
        if client.add("arrived", 1) == CLIENTS // ranks * ranks:
            client.set("all", "1")
    for client in clients:
        client.wait(["all"])
    taken = time.perf_counter() - start
    dist.barrier()
    return taken


# ---- training steps


def model_and_input(xp: Any, nn: Any, name: str) -> tuple[Any, Any]:
    """Return a model, and a batch of one rank."""
    if name == "mlp":  # 25 million parameters
        sizes = [1024, 4096, 4096, 1024]
        layers = [layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers), xp.randn(64, 1024)
    if name == "conv net":
        widths = [3, 32, 64, 128, 128]
        layers = [
            layer
            for a, b in itertools.pairwise(widths)
            for layer in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
        ]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10)), xp.randn(32, 3, 32, 32)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), xp.randn(8, 128, 256)


def step(xp: Any, dist: Any, library: str, name: str, seconds: float) -> float:
    """Return the seconds of a training step, of which each rank has the same part."""
    nn, optim = importlib.import_module(f"{library}.nn"), importlib.import_module(f"{library}.optim")
    model, x = model_and_input(xp, nn, name)
    model = nn.parallel.DistributedDataParallel(model) if dist.get_world_size() > 1 else model
    optimizer = optim.SGD(model.parameters(), lr=1e-6)

    def train() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return timed(dist, train, seconds)


if __name__ == "__main__":
    main()
