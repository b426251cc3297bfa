"""sentence-transformers: a model made of a small BERT encodes texts, learns and is stored."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from harness import run
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers import models as parts
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "sits", "runs", "sun", "moon", "shines"]
TEXTS = ["a cat sits", "a dog runs", "a sun shines", "a moon shines"]


def main() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_text("\n".join(WORDS))
        BertTokenizerFast(
            vocab_file=f"{folder}/vocab.txt", vocab={word: i for i, word in enumerate(WORDS)}
        ).save_pretrained(folder)
        config = BertConfig(
            vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        BertModel(config).save_pretrained(folder)
        words = parts.Transformer(folder)
        model = SentenceTransformer(modules=[words, parts.Pooling(32, "mean")], device="cpu")
        loss_of = losses.CosineSimilarityLoss(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        trained = []
        model.train()
        for _ in range(5):
            pairs = [model.tokenize(TEXTS[:2]), model.tokenize(TEXTS[2:])]
            loss = loss_of(pairs, torch.tensor([0.0, 0.2]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trained.append(loss.item())
        model.save(f"{folder}/stored")
        loaded = SentenceTransformer(f"{folder}/stored", device="cpu")
    encoded = loaded.encode(TEXTS, convert_to_tensor=True)
    return {
        "losses": trained,
        "similar": util.cos_sim(encoded, encoded)[0],
        "found": util.semantic_search(encoded[:1], encoded)[0][0]["score"],
    }


if __name__ == "__main__":
    run(main)
