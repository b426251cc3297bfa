"""accelerate: a loop with gradient accumulation, a stored state, and empty weights."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import set_seed
from harness import run
from torch import nn


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 2))


def main() -> dict[str, Any]:
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss).item())
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(f"{folder}/state")
        accelerator.load_state(f"{folder}/state")
        accelerator.save_model(model, f"{folder}/model")
        with init_empty_weights():
            empty = net()
        devices = {parameter.device.type for parameter in empty.parameters()}
        loaded = load_checkpoint_and_dispatch(empty, f"{folder}/model", device_map={"": "cpu"})
    return {"losses": losses, "devices": sorted(devices), "loaded": loaded(torch.ones(1, 8))}


if __name__ == "__main__":
    run(main)
