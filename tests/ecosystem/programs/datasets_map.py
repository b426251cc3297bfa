"""datasets: a table is mapped in batches, formatted as tensors, stored and trained on."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from datasets import Dataset, disable_progress_bars, load_from_disk
from harness import run

disable_progress_bars()


def features(batch: dict[str, list[int]]) -> dict[str, list[list[float]]]:
    return {"x": [[float(value), value % 3, value % 5] for value in batch["number"]]}


def main() -> dict[str, Any]:
    table = Dataset.from_dict({"number": list(range(64)), "label": [value % 2 for value in range(64)]})
    with tempfile.TemporaryDirectory() as folder:
        table.map(features, batched=True).save_to_disk(folder)
        stored = load_from_disk(folder).with_format("torch")
        parts = stored.train_test_split(test_size=16, seed=0)
        net = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        losses = []
        for _ in range(2):
            for batch in torch.utils.data.DataLoader(parts["train"], batch_size=16):
                loss = torch.nn.functional.cross_entropy(net(batch["x"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        row = parts["test"][0]["x"].clone()
        stream = stored.to_iterable_dataset().with_format("torch")
        total = sum(example["number"].item() for example in stream)
    return {"losses": losses, "row": row, "total": total}


if __name__ == "__main__":
    run(main)
