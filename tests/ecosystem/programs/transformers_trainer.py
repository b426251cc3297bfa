"""transformers: Trainer fine-tunes a BERT classifier, evaluates it and resumes a checkpoint."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from harness import run
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Pairs(torch.utils.data.Dataset):
    """Sequences of tokens; the label says whether the first token is odd."""

    def __init__(self, count: int) -> None:
        self.tokens = torch.arange(count * 16).reshape(count, 16) * 13 % 53

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index, 0] % 2}


def main() -> dict[str, Any]:
    config = BertConfig(
        vocab_size=53, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=8, num_train_epochs=2, learning_rate=1e-3, save_steps=4,
            logging_steps=2, report_to=[], seed=0, use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(model=model, args=options, train_dataset=Pairs(32), eval_dataset=Pairs(16))
        outcome = trainer.train()
        evaluation = trainer.evaluate()["eval_loss"]
        again = trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-4")
    return {"train": outcome.training_loss, "evaluation": evaluation, "steps": again.global_step}


if __name__ == "__main__":
    run(main)
