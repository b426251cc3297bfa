"""einops: rearranged tensors and its layers in a small mixer, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce
from harness import run
from torch import nn


def main() -> dict[str, Any]:
    images = torch.randn(8, 3, 32, 32)
    net = nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=8, q=8), nn.Linear(192, 64), nn.GELU(), nn.LayerNorm(64),
        Rearrange("b n d -> b d n"), nn.Linear(16, 16), Reduce("b d n -> b d", "mean"), nn.Linear(64, 4),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    losses = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(net(images), torch.arange(8) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tiles = rearrange(images, "b c (h p) (w q) -> (b h w) c p q", p=16, q=16)
    packed, shapes = pack([tiles[0], tiles[1]], "* p q")
    product = einsum(tiles, tiles, "n c p q, m c p q -> n m")
    return {
        "losses": losses, "pooled": reduce(images, "b c h w -> c", "max"), "product": product.trace(),
        "packed": packed.sum(), "shapes": [list(shape) for shape in shapes],
        "repeated": list(repeat(tiles[0], "c p q -> c (p r) q", r=2).shape),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
