"""ptflops: multiply-adds of a convolutional network and of a transformer layer are counted."""

from __future__ import annotations

import io
from typing import Any

import torch
from harness import run
from ptflops import get_model_complexity_info
from torch import nn


def main() -> dict[str, Any]:
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 49, 10))
    results: dict[str, Any] = {}
    for backend in ("pytorch", "aten"):
        found = get_model_complexity_info(
            net,
            (3, 16, 16),
            as_strings=False,
            print_per_layer_stat=False,
            verbose=False,
            backend=backend,
            ost=io.StringIO(),
        )
        results[backend] = list(found)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    layer.train()
    results["layer"] = get_model_complexity_info(
        layer, (5, 16), as_strings=False, print_per_layer_stat=False, verbose=False, backend="pytorch",
        input_constructor=lambda size: {"src": torch.zeros(1, *size)},
    )[1]  # fmt: skip
    return results


if __name__ == "__main__":
    run(main)
