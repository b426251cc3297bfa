"""pyro: variational inference, Hamiltonian Monte Carlo and predictions of a regression."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import torch
from harness import run
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal


def model(x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
    slope = pyro.sample("slope", dist.Normal(0.0, 2.0))
    offset = pyro.sample("offset", dist.Normal(0.0, 2.0))
    scale = pyro.sample("scale", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(slope * x + offset, scale), obs=y)


def main() -> dict[str, Any]:
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    x = torch.linspace(-1, 1, 30)
    y = 1.5 * x + 0.5 + 0.1 * torch.randn(30)
    guide = AutoNormal(model)
    inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    losses = [inference.step(x, y) for _ in range(40)]
    predicted = Predictive(model, guide=guide, num_samples=50)(x)["y"].mean(0)
    chain = MCMC(NUTS(model), num_samples=20, warmup_steps=20, disable_progbar=True)
    chain.run(x, y)
    slope = chain.get_samples()["slope"].mean().item()
    return {"losses": losses, "predicted": predicted[:5], "slope": round(slope, 0)}


if __name__ == "__main__":
    run(main)
