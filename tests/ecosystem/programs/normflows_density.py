"""normflows: a flow of coupling layers learns a density and samples from it."""

from __future__ import annotations

import io
from typing import Any

import normflows
import torch
from harness import run


def main() -> dict[str, Any]:
    parts = []
    for _ in range(3):
        net = normflows.nets.MLP([1, 16, 2], init_zeros=True)
        parts += [
            normflows.flows.AffineCouplingBlock(net),
            normflows.flows.Permute(2, mode="swap"),
            normflows.flows.ActNorm(2),
        ]
    model = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), parts)
    # Adam would take steps in the direction of gradients that are only rounding.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    target = normflows.distributions.TwoMoons()
    losses = []
    for _ in range(8):
        loss = model.forward_kld(torch.randn(64, 2) * 0.5 + 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file))
    sampled, density = model.sample(16)
    spline = normflows.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8)
    moved, change = spline(torch.linspace(-1, 1, 8).reshape(4, 2))
    return {
        "losses": losses, "sampled": sampled.mean(0), "density": density.mean(), "moons": target.log_prob(torch.zeros(1, 2)),
        "moved": moved.sum(), "change": change,
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
