"""schedulefree: four optimizers without a schedule, in training and in evaluation."""

from __future__ import annotations

from typing import Any

import schedulefree
import torch
from harness import run


def main() -> dict[str, Any]:
    x = torch.randn(64, 8)
    y = (x[:, 0] > 0).long()
    results: dict[str, Any] = {}
    for name, options in {
        "AdamWScheduleFree": {"lr": 0.01, "warmup_steps": 3}, "SGDScheduleFree": {"lr": 0.5}, "RAdamScheduleFree": {"lr": 0.01},
        "AdamWScheduleFreeReference": {"lr": 0.01},
    }.items():  # fmt: skip
        torch.manual_seed(2)
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        optimizer = getattr(schedulefree, name)(net.parameters(), **options)
        optimizer.train()
        for _ in range(8):
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        optimizer.eval()
        results[name] = [loss, torch.nn.functional.cross_entropy(net(x), y)]
    return results


if __name__ == "__main__":
    run(main)
