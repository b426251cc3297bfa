"""nflows: a masked autoregressive flow and a spline flow with a context learn densities."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from nflows.distributions.normal import ConditionalDiagonalNormal, StandardNormal
from nflows.flows.base import Flow
from nflows.transforms import CompositeTransform, MaskedAffineAutoregressiveTransform, ReversePermutation
from nflows.transforms.autoregressive import MaskedPiecewiseRationalQuadraticAutoregressiveTransform


def main() -> dict[str, Any]:
    affine: list[Any] = []
    for _ in range(2):
        affine += [ReversePermutation(features=2), MaskedAffineAutoregressiveTransform(features=2, hidden_features=8)]
    spline = MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        2, 8, context_features=1, tails="linear", tail_bound=3.0
    )
    flows = {
        "affine": (Flow(CompositeTransform(affine), StandardNormal([2])), None),
        "spline": (
            Flow(spline, ConditionalDiagonalNormal([2], context_encoder=torch.nn.Linear(1, 4))),
            torch.linspace(-1, 1, 48)[:, None],
        ),
    }
    data = torch.randn(48, 2) @ torch.tensor([[1.0, 0.5], [0.0, 0.7]]) + 0.3
    results: dict[str, Any] = {}
    for name, (flow, context) in flows.items():
        optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
        losses = []
        for _ in range(6):
            loss = -flow.log_prob(data, context=context).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        sampled = flow.sample(4, context=None if context is None else context[:3])
        results[name] = {"losses": losses, "sampled": sampled.abs().mean()}
    return results


if __name__ == "__main__":
    run(main)
