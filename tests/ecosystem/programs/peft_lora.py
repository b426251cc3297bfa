"""peft: LoRA adapters of a Llama are trained, stored, loaded and merged."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from harness import run
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def base() -> LlamaForCausalLM:
    torch.manual_seed(1)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2,
        )
    )  # fmt: skip


def main() -> dict[str, Any]:
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0, task_type="CAUSAL_LM")
    model = get_peft_model(base(), config)
    trained, every = model.get_nb_trainable_parameters()
    tokens = torch.arange(4 * 16).reshape(4, 16) % 61
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(8):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = PeftModel.from_pretrained(base(), folder)
    merged = loaded.merge_and_unload()
    return {"parameters": [trained, every], "losses": losses, "merged": merged(input_ids=tokens).logits.std()}


if __name__ == "__main__":
    run(main)
