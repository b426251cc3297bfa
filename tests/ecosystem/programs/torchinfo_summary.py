"""torchinfo, torchsummary's successor: layers, sizes and parameters of a network are told."""

from __future__ import annotations

from typing import Any

import torch
import torchinfo
from harness import run


def main() -> dict[str, Any]:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10),
        torch.nn.TransformerEncoderLayer(10, 2, 16),
    )  # fmt: skip
    told = torchinfo.summary(
        net, input_size=(2, 3, 12, 12), verbose=0, col_names=("input_size", "output_size", "num_params", "mult_adds")
    )
    rnn = torchinfo.summary(torch.nn.LSTM(8, 16, 2), input_size=(5, 3, 8), verbose=0)
    return {
        "parameters": told.total_params, "operations": told.total_mult_adds, "bytes": told.total_output_bytes, "rnn": rnn.total_params,
        "layers": [f"{layer.class_name} {layer.output_size}" for layer in told.summary_list],
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
