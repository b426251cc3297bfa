"""opacus: a network is trained with differential privacy, and its budget is told."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from harness import run
from opacus import PrivacyEngine
from torch import nn

warnings.filterwarnings("ignore")


def main() -> dict[str, Any]:
    model: nn.Module = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 36, 16),
        nn.Tanh(),
        nn.Linear(16, 3),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(64, 1, 8, 8), torch.randint(0, 3, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )
    losses = []
    for _ in range(2):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    samples = model._module[0].weight.grad_sample
    return {"losses": losses, "epsilon": engine.get_epsilon(1e-5), "samples": list(samples.shape)}


if __name__ == "__main__":
    run(main)
