"""Train one network in several processes that Ray starts, an actor for each rank.

    pip install ray candelabra-distributed candelabra-collectives-mpi
    python examples/train_ray.py --ranks 2

The actor of rank 0 runs the store by which the ranks meet, at a port that is free on its machine.
With ``--kill`` an actor is killed in the first attempt: the others are told, and new actors go on
with the last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import tempfile
from pathlib import Path
from typing import Any

import ray

import candelabra
import candelabra.distributed as dist
from candelabra import nn, optim
from candelabra.distributed.data_parallel import DistributedDataParallel


class Rank:
    """One rank, in a process of its own.

    Parameters
    ----------
    token : str
        A secret that the ranks share: the store lets nobody else in.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.store: dist.TCPStore | None = None

    def serve(self) -> tuple[str, int]:
        """Start the store, on rank 0; return its address."""
        host = socket.gethostbyname(socket.gethostname())
        self.store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False, token=self.token)
        return host, self.store.port

    def train(self, rank: int, ranks: int, address: tuple[str, int], checkpoint: str, steps: int, dies: bool) -> Any:
        """Train, and return the losses, or what this rank was told if another one has died."""
        store = self.store or dist.TCPStore(*address, wait_for_workers=False, token=self.token)
        dist.init_process_group("mpi", store=store, rank=rank, world_size=ranks)
        candelabra.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        path = Path(checkpoint)
        first = 0
        if path.exists():
            saved = candelabra.load(path)
            model.load_state_dict(saved["model"])
            first = saved["step"] + 1
        parallel = DistributedDataParallel(model)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        losses = []
        x = candelabra.randn(32, 4, generator=candelabra.Generator().manual_seed(rank))
        for step in range(first, steps):
            if dies and step == steps // 2:
                os.kill(os.getpid(), 9)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(parallel(x)[:, 0], x.sum(1).sin())
            try:
                loss.backward()
            except dist.DistBackendError as error:
                return {"error": str(error)}
            optimizer.step()
            losses.append(loss.item())
            if rank == 0:
                unfinished = path.with_suffix(".unfinished")
                candelabra.save({"model": model.state_dict(), "step": step}, unfinished)
                unfinished.replace(path)
        dist.destroy_process_group()
        return {"first": first, "losses": losses}


def attempt(ranks: int, checkpoint: str, steps: int, kill: bool) -> list[Any]:
    """Start the actors; return their results, of those that live."""
    actor = ray.remote(num_cpus=1)(Rank)
    token = secrets.token_hex(16)
    actors = [actor.remote(token) for _ in range(ranks)]
    address = ray.get(actors[0].serve.remote())
    calls = [
        each.train.remote(rank, ranks, address, checkpoint, steps, kill and rank == ranks - 1)
        for rank, each in enumerate(actors)
    ]
    results = []
    for call in calls:
        try:
            results.append(ray.get(call))
        except ray.exceptions.RayActorError:
            results.append(None)
    for each in actors:
        ray.kill(each)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--checkpoint", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # On several machines, this is in a folder that all of them share.
        checkpoint = given.checkpoint or str(Path(folder) / "train_ray.pt")
        results = attempt(given.ranks, checkpoint, given.steps, given.kill)
        if any(result is None or "error" in result for result in results):
            told = next(result["error"] for result in results if result is not None)
            print(f"a rank has failed: {told}", flush=True)
            results = attempt(given.ranks, checkpoint, given.steps, False)
        print(f"started at step {results[0]['first']}", flush=True)
        print(f"losses {results[0]['losses'][0]:.4f} to {results[0]['losses'][-1]:.4f}", flush=True)


if __name__ == "__main__":
    # As many ranks as are asked for, also on a machine with fewer processors.
    ray.init(num_cpus=max(8, os.cpu_count() or 1), include_dashboard=False, log_to_driver=False)
    main()
    ray.shutdown()
