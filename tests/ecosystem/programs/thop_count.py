"""thop: operations and parameters of a network are counted."""

from __future__ import annotations

from typing import Any

import thop
import torch
from harness import run
from torch import nn


def main() -> dict[str, Any]:
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 8, 2), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
        nn.Linear(128, 10), nn.Softmax(-1),
    )  # fmt: skip
    operations, parameters = thop.profile(net, inputs=(torch.randn(1, 3, 32, 32),), verbose=False)
    recurrent = thop.profile(nn.GRU(8, 16, batch_first=True), inputs=(torch.randn(2, 5, 8),), verbose=False)
    return {
        "operations": operations,
        "parameters": parameters,
        "text": thop.clever_format([operations, parameters], "%.2f"),
        "gru": recurrent,
    }


if __name__ == "__main__":
    run(main)
