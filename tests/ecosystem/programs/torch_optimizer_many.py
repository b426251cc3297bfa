"""torch-optimizer: one regression by ten optimizers."""

from __future__ import annotations

from typing import Any

import torch
import torch_optimizer
from harness import run

NAMES = ["AdaBound", "AdaMod", "DiffGrad", "Lamb", "NovoGrad", "QHAdam", "Ranger", "SWATS", "Yogi", "MADGRAD"]


def main() -> dict[str, Any]:
    x = torch.randn(64, 8)
    y = x @ torch.randn(8, 3)
    results: dict[str, Any] = {}
    for name in NAMES:
        torch.manual_seed(1)
        net = torch.nn.Linear(8, 3)
        inner = getattr(torch_optimizer, name)(net.parameters(), lr=1e-2)
        optimizer = torch_optimizer.Lookahead(inner, k=2) if name == "Yogi" else inner
        for _ in range(6):
            loss = (net(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        results[name] = loss
    return results


if __name__ == "__main__":
    run(main)
