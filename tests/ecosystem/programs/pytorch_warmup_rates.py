"""pytorch-warmup: rates of three warm-ups over a schedule."""

from __future__ import annotations

from typing import Any

import pytorch_warmup
import torch
from harness import run


def main() -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, make in {
        "linear": lambda o: pytorch_warmup.LinearWarmup(o, 5), "exponential": lambda o: pytorch_warmup.ExponentialWarmup(o, 3),
        "untuned": pytorch_warmup.UntunedLinearWarmup, "radam": pytorch_warmup.RAdamWarmup,
    }.items():  # fmt: skip
        torch.manual_seed(3)
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, betas=(0.9, 0.99))
        schedule, warmup = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20), make(optimizer)
        rates = []
        for _ in range(8):
            loss = net(torch.ones(2, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with warmup.dampening():
                schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        results[name] = {"rates": rates, "loss": loss}
    return results


if __name__ == "__main__":
    run(main)
