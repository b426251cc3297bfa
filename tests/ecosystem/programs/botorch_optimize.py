"""botorch: Bayesian optimization of a function of two variables by expected improvement."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from botorch.acquisition import LogExpectedImprovement, qUpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from harness import run

warnings.filterwarnings("ignore")


def main() -> dict[str, Any]:
    x = torch.rand(8, 2, dtype=torch.float64)
    y = -(x - 0.3).square().sum(-1, keepdim=True)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    for _ in range(2):
        model = SingleTaskGP(x, (y - y.mean()) / y.std())
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        improvement = LogExpectedImprovement(model, best_f=model.train_targets.max())
        candidate, _ = optimize_acqf(improvement, bounds=bounds, q=1, num_restarts=3, raw_samples=16)
        x = torch.cat([x, candidate])
        y = -(x - 0.3).square().sum(-1, keepdim=True)
    bound = qUpperConfidenceBound(model, beta=0.1)(torch.full((1, 2, 2), 0.4, dtype=torch.float64))
    return {"best": round(y.max().item(), 1), "first": (x[:8] * 10).round(), "finite": bool(bound.isfinite().all())}


if __name__ == "__main__":
    run(main)
