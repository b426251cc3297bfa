"""trl: a small Qwen is tuned on texts, and on preferences between answers."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

from datasets import Dataset, disable_progress_bars
from harness import run
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

WORDS = ["<pad>", "<eos>", "<unk>", "the", "cat", "dog", "sits", "runs", "here", "there", "yes", "no"]
OPTIONS: dict[str, Any] = {
    "per_device_train_batch_size": 2, "max_steps": 3, "learning_rate": 1e-3, "report_to": [], "use_cpu": True, "disable_tqdm": True,
    "logging_steps": 1, "save_strategy": "no", "bf16": False, "gradient_checkpointing": False,
}  # fmt: skip


def main() -> dict[str, Any]:
    disable_progress_bars()
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
            pad_token_id=0, eos_token_id=1,
        )
    )  # fmt: skip
    texts = Dataset.from_dict(
        {"text": ["the cat sits here", "the dog runs there", "the cat runs here", "the dog sits there"]}
    )
    pairs = Dataset.from_dict({
        "prompt": ["the cat ", "the dog ", "cat ", "dog "], "chosen": ["sits here", "runs there", "yes", "yes"],
        "rejected": ["runs there", "sits here", "no", "no"],
    })  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        tuned = SFTTrainer(
            model, SFTConfig(output_dir=folder, **OPTIONS), train_dataset=texts, processing_class=tokenizer
        )
        first = tuned.train().training_loss
        reference = copy.deepcopy(model)
        preferred = DPOTrainer(
            model,
            reference,
            args=DPOConfig(output_dir=folder, **OPTIONS),
            train_dataset=pairs,
            processing_class=tokenizer,
        )
        second = preferred.train().training_loss
    return {"tuned": first, "preferred": second}


if __name__ == "__main__":
    run(main)
