"""gpytorch: an exact and a variational Gaussian process are fitted and predict."""

from __future__ import annotations

import io
from typing import Any

import gpytorch
import torch
from harness import run


class Exact(gpytorch.models.ExactGP):
    """A process with a scaled RBF kernel."""

    def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(1.5)
        )

    def forward(self, x: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    """A process with 8 inducing points."""

    def __init__(self, points: torch.Tensor) -> None:
        weights = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, weights))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def main() -> dict[str, Any]:
    x = torch.linspace(0, 1, 40)
    y = (6 * x).sin() + 0.1 * torch.randn(40)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    exact = Exact(x, y, likelihood)
    sparse, noise = Variational(x[::5].clone()), gpytorch.likelihoods.GaussianLikelihood()
    bounds = {
        "exact": (exact, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, exact)),
        "sparse": (sparse, gpytorch.mlls.VariationalELBO(noise, sparse, 40)),
    }
    results: dict[str, Any] = {}
    for name, (model, bound) in bounds.items():
        optimizer = torch.optim.Adam([*bound.parameters()], lr=0.1)
        losses = []
        for _ in range(15):
            optimizer.zero_grad()
            loss = -bound(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results[name] = losses
    file = io.BytesIO()
    torch.save(exact.state_dict(), file)
    file.seek(0)
    exact.load_state_dict(torch.load(file))
    exact.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        told = likelihood(exact(torch.linspace(0, 1, 7)))
    return {**results, "mean": told.mean, "variance": told.variance}


if __name__ == "__main__":
    run(main)
