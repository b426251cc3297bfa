"""Train one network in several processes, and go on after one of them was killed.

    python -m candelabra.distributed.run --nproc-per-node 2 --max-restarts 3 \\
        examples/train_distributed.py

Rank 0 saves what is needed to go on after each epoch. With ``--kill-in-epoch 2`` rank 1 kills
itself in the first attempt; the launcher starts all processes again, and they go on with that
epoch. The number of ranks may be another one then. With ``--lose-machine-in-epoch 2`` the launcher
of the second machine is killed; the job goes on without it. To try that on one machine, start
twice:

    python -m candelabra.distributed.run --nnodes 1:2 --rdzv-backend c10d --rdzv-id rings \\
        --rdzv-endpoint localhost:29500 --max-restarts 3 examples/train_distributed.py \\
        --lose-machine-in-epoch 2
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import candelabra
import candelabra.distributed as dist
from candelabra import nn, optim
from candelabra.distributed.data_parallel import DistributedDataParallel
from candelabra.utils.data import DataLoader, DistributedSampler, TensorDataset

BATCH = 16


def samples() -> TensorDataset:
    """Return points of two rings, and in which ring each is."""
    made = candelabra.Generator().manual_seed(0)
    rings = candelabra.randint(0, 2, (512,), generator=made)
    angles = candelabra.rand(512, generator=made) * 6.283185307179586
    radius = 1.0 + rings + 0.2 * candelabra.randn(512, generator=made)
    points = candelabra.stack([radius * angles.cos(), radius * angles.sin()], 1)
    return TensorDataset(points, rings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--checkpoint", type=Path, default=Path("train_distributed.pt"))
    parser.add_argument("--backend", default="mpi")
    parser.add_argument("--kill-in-epoch", type=int)
    parser.add_argument("--lose-machine-in-epoch", type=int)
    given = parser.parse_args()

    dist.init_process_group(given.backend)
    rank = dist.get_rank()
    candelabra.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    first = 0
    is_first_attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
    if given.checkpoint.exists():
        saved = candelabra.load(given.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1
        if rank == 0:
            print(f"goes on with epoch {first} on {dist.get_world_size()} ranks", flush=True)
    parallel = DistributedDataParallel(model)
    sampler: DistributedSampler = DistributedSampler(samples())
    loader = DataLoader(samples(), BATCH, sampler=sampler)
    for epoch in range(first, given.epochs):
        sampler.set_epoch(epoch)
        total = candelabra.zeros(1)
        for points, rings in loader:
            if is_first_attempt and rank == 1:
                if epoch == given.kill_in_epoch:
                    os.kill(os.getpid(), signal.SIGKILL)
                if epoch == given.lose_machine_in_epoch:
                    os.kill(os.getppid(), signal.SIGKILL)  # the launcher, with which its ranks end
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(points), rings)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        if rank == 0:
            unfinished = given.checkpoint.with_suffix(".unfinished")
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            candelabra.save(state, unfinished)
            unfinished.replace(given.checkpoint)  # whole, or the one before
            print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
