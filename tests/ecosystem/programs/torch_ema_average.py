"""torch-ema and ema-pytorch: moving averages of weights, applied, stored and restored."""

from __future__ import annotations

from typing import Any

import torch
from ema_pytorch import EMA
from harness import run
from torch_ema import ExponentialMovingAverage


def main() -> dict[str, Any]:
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    average = ExponentialMovingAverage(net.parameters(), decay=0.9)
    copy = EMA(net, beta=0.9, update_after_step=2, update_every=2)
    x = torch.randn(32, 8)
    for _ in range(10):
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        copy.update()
    other = ExponentialMovingAverage(net.parameters(), decay=0.5)
    other.load_state_dict(average.state_dict())
    with other.average_parameters():
        averaged = net(x).mean().item()
    return {"loss": loss, "averaged": averaged, "now": net(x).mean(), "copy": copy(x).mean(), "decay": other.decay}


if __name__ == "__main__":
    run(main)
