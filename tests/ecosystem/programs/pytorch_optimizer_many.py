"""pytorch-optimizer: one regression by twelve optimizers."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from pytorch_optimizer import get_supported_lr_schedulers, load_optimizer

NAMES = [
    "adabelief",
    "adan",
    "lamb",
    "lion",
    "madgrad",
    "radam",
    "ranger",
    "sophiah",
    "prodigy",
    "tiger",
    "came",
    "adafactor",
]


def main() -> dict[str, Any]:
    x = torch.randn(64, 8)
    y = x @ torch.randn(8, 3)
    results: dict[str, Any] = {"schedules": len(get_supported_lr_schedulers()) > 3}
    for name in NAMES:
        torch.manual_seed(1)
        net = torch.nn.Linear(8, 3)
        optimizer = load_optimizer(name)(net.parameters(), lr=1e-2)
        for _ in range(5):
            loss = (net(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward(create_graph=name == "sophiah")
            optimizer.step()
        results[name] = loss
    return results


if __name__ == "__main__":
    run(main)
