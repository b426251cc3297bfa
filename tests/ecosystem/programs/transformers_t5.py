"""transformers: a Llama and a T5 run in bfloat16 and float32, with key-value caches."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration


def main() -> dict[str, Any]:
    tokens = torch.arange(4 * 24).reshape(4, 24) * 5 % 97
    llama = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=97, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2,
        )
    )  # fmt: skip
    loss = llama(input_ids=tokens, labels=tokens).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(llama.parameters(), 1.0)
    continued = llama.eval().generate(tokens[:, :5], max_new_tokens=16, do_sample=False, pad_token_id=0)
    half = llama.bfloat16()(input_ids=tokens).logits.float().mean()
    t5 = T5ForConditionalGeneration(
        T5Config(
            vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
            decoder_start_token_id=0,
        )
    )  # fmt: skip
    answer = t5(input_ids=tokens, labels=tokens[:, :8].contiguous())
    answer.loss.backward()
    return {
        "llama": loss, "norm": norm, "continued": continued, "half": round(half.item(), 2), "t5": answer.loss,
        "written": t5.eval().generate(tokens[:1], max_new_tokens=6, do_sample=False),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
