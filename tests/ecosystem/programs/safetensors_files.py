"""safetensors: tensors of many dtypes, models with shared weights, and slices of files."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from harness import run
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model


def main() -> dict[str, Any]:
    dtypes = [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int8,
        torch.uint8,
        torch.bool,
    ]
    tensors = {str(dtype).rpartition(".")[2]: (torch.randn(3, 4) * 3).to(dtype) for dtype in dtypes}
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    net[1].weight = net[0].weight
    with tempfile.TemporaryDirectory() as folder:
        save_file(tensors, f"{folder}/some.safetensors", metadata={"made": "here"})
        read = load_file(f"{folder}/some.safetensors")
        with safe_open(f"{folder}/some.safetensors", framework="pt") as file:
            part = file.get_slice("float32")[1:, :2]
            told = file.metadata()
        save_model(net, f"{folder}/net.safetensors")
        other = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        other[1].weight = other[0].weight
        missing, extra = load_model(other, f"{folder}/net.safetensors")
    again = load(save({"one": torch.ones(2, 2)}))
    return {
        "sums": {name: tensor.double().sum() for name, tensor in read.items()}, "part": part, "told": told, "again": again["one"],
        "same": torch.equal(other[0].weight, net[0].weight), "missing": len(missing) + len(extra),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
