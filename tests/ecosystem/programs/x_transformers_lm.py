"""x-transformers: an autoregressive model with rotary positions and grouped queries learns and
generates.
"""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def main() -> dict[str, Any]:
    layers = Decoder(
        dim=32, depth=2, heads=4, attn_kv_heads=2, rotary_pos_emb=True, ff_swish=True, ff_glu=True, use_rmsnorm=True
    )
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=32, max_seq_len=64, attn_layers=layers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.arange(4 * 33).reshape(4, 33) * 3 % 31
    losses = []
    for _ in range(6):
        loss = model(tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    generated = model.generate(tokens[:1, :6], 10, temperature=0.0)
    return {"losses": losses, "generated": generated}


if __name__ == "__main__":
    run(main)
