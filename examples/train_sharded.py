"""Train a small network of which each process keeps a part.

Run it with ``python -m candelabra.distributed.run --nproc-per-node 2 examples/train_sharded.py``.
"""

from __future__ import annotations

import os

import candelabra
import candelabra.distributed as dist
from candelabra import Tensor, nn, optim
from candelabra.distributed.device_mesh import init_device_mesh
from candelabra.distributed.fsdp import fully_shard

WIDTH, BLOCKS, STEPS = 32, 3, 30


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(self.norm(x))


def main() -> None:
    """Train, and print the losses of the first rank."""
    dist.init_process_group(os.environ.get("BACKEND", "mpi"))
    candelabra.manual_seed(0)  # all ranks start with the same values
    model = nn.Sequential(nn.Linear(8, WIDTH), *(Block() for _ in range(BLOCKS)), nn.Linear(WIDTH, 1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for module in model:
        if isinstance(module, Block):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)

    candelabra.manual_seed(1 + dist.get_rank())  # each rank has data of its own
    for step in range(STEPS):
        x = candelabra.randn(64, 8)
        loss = nn.functional.mse_loss(model(x), x.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert norm.full_tensor().isfinite()
        optimizer.step()
        if dist.get_rank() == 0 and step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    kept = sum(each.to_local().numel() for each in model.parameters())
    print(
        f"rank {dist.get_rank()} keeps {kept} of {sum(each.numel() for each in model.parameters())} parameters\n",
        end="",
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
