"""vector-quantize-pytorch: codebooks by moving averages, residual codes, and finite scalars."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from vector_quantize_pytorch import FSQ, ResidualVQ, VectorQuantize


def main() -> dict[str, Any]:
    data = torch.randn(2, 64, 16)
    plain = VectorQuantize(dim=16, codebook_size=32, decay=0.8, commitment_weight=1.0)
    residual = ResidualVQ(dim=16, num_quantizers=3, codebook_size=16)
    scalars = FSQ(levels=[8, 5, 5], dim=16)
    losses = []
    for _ in range(3):
        quantized, codes, loss = plain(data)
        losses.append(loss.item())
    several, several_codes, several_losses = residual(data)
    finite, finite_codes = scalars(data)
    layer = torch.nn.Linear(16, 16)
    (plain(layer(data))[0].square().mean() + finite.mean()).backward()
    return {
        "losses": losses, "codes": codes[0, :8], "quantized": quantized.mean(), "several": several.std(),
        "several_losses": several_losses.flatten(), "finite": finite.std(), "finite_codes": finite_codes[0, :4],
        "several_codes": several_codes[0, 0], "gradient": layer.weight.grad.norm(),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
