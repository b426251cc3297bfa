"""rotary-embedding-torch and local-attention: attention in windows with rotary positions."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from local_attention import LocalAttention
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb


def main() -> dict[str, Any]:
    rotary = RotaryEmbedding(dim=8, learned_freq=True)
    queries, keys, values = (torch.randn(2, 4, 32, 16, requires_grad=True) for _ in range(3))
    turned = [rotary.rotate_queries_or_keys(tensor) for tensor in (queries, keys)]
    attended = torch.nn.functional.scaled_dot_product_attention(*turned, values, is_causal=True)
    attended.square().mean().backward()
    pixels = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=10)
    placed = apply_rotary_emb(pixels.get_axial_freqs(4, 8), torch.randn(1, 4, 8, 16))
    windows = LocalAttention(dim=16, window_size=8, causal=True, autopad=True)
    local = windows(queries, keys, values)
    return {
        "attended": attended.norm(),
        "gradient": queries.grad.norm(),
        "frequencies": rotary.freqs.grad,
        "placed": placed.norm(),
        "local": local.norm(),
    }


if __name__ == "__main__":
    run(main)
