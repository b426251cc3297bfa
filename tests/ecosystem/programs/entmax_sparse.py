"""entmax: sparse probabilities and their losses, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from entmax import Entmax15Loss, SparsemaxLoss, entmax15, entmax_bisect, normmax_bisect, sparsemax
from harness import run


def main() -> dict[str, Any]:
    scores = torch.randn(6, 20, requires_grad=True)
    alpha = torch.tensor(1.4, requires_grad=True)
    results: dict[str, Any] = {}
    for name, probabilities in {
        "entmax15": entmax15(scores, dim=-1), "sparsemax": sparsemax(scores, dim=-1), "bisect": entmax_bisect(scores, alpha),
        "normmax": normmax_bisect(scores, dim=-1), "top": sparsemax(scores, dim=-1, k=5),
    }.items():  # fmt: skip
        gradient = torch.autograd.grad(probabilities.square().sum(), scores, retain_graph=True)[0]
        results[name] = {
            "zeros": int((probabilities == 0).sum()),
            "norm": probabilities.square().sum(),
            "gradient": gradient.norm(),
        }
    loss = SparsemaxLoss()(scores, torch.arange(6)) + Entmax15Loss()(scores, torch.arange(6))
    loss.backward()
    return {**results, "loss": loss, "gradient": scores.grad.norm()}


if __name__ == "__main__":
    run(main)
