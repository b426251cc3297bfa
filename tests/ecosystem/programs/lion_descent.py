"""lion-pytorch: a convolutional network is trained by Lion, and its state is stored and loaded."""

from __future__ import annotations

import io
from typing import Any

import torch
from harness import run
from lion_pytorch import Lion
from torch import nn


def main() -> dict[str, Any]:
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 5)
    )
    optimizer = Lion(net.parameters(), lr=1e-3, weight_decay=1e-2)
    images, labels = torch.randn(16, 1, 16, 16), torch.arange(16) % 5
    losses = []
    for step in range(8):
        loss = nn.functional.cross_entropy(net(images), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 3:
            file = io.BytesIO()
            torch.save(optimizer.state_dict(), file)
            file.seek(0)
            optimizer = Lion(net.parameters(), lr=1.0)
            optimizer.load_state_dict(torch.load(file))
    return {"losses": losses, "rate": optimizer.param_groups[0]["lr"]}


if __name__ == "__main__":
    run(main)
