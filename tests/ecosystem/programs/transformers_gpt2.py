"""transformers: a small GPT-2 is trained, saved, loaded, and generates."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from harness import run
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> dict[str, Any]:
    config = GPT2Config(
        vocab_size=64, n_positions=64, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.arange(8 * 32).reshape(8, 32) * 7 % 61
    losses = []
    for _ in range(10):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = GPT2LMHeadModel.from_pretrained(folder).eval()
    greedy = loaded.generate(tokens[:2, :8], max_new_tokens=12, do_sample=False, pad_token_id=0)
    beams = loaded.generate(tokens[:2, :8], max_new_tokens=6, num_beams=3, do_sample=False, pad_token_id=0)
    return {"losses": losses, "greedy": greedy, "beams": beams}


if __name__ == "__main__":
    run(main)
