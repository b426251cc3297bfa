"""torchsde: paths of stochastic differential equations, and gradients by the adjoint method."""

from __future__ import annotations

from typing import Any

import torch
import torchsde
from harness import run


class Equation(torch.nn.Module):
    """Drift by a network, diffusion by a parameter."""

    noise_type, sde_type = "diagonal", "ito"

    def __init__(self) -> None:
        super().__init__()
        self.net, self.scale = torch.nn.Linear(2, 2), torch.nn.Parameter(torch.tensor(0.3))

    def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y).tanh()

    def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.scale * torch.ones_like(y)


def main() -> dict[str, Any]:
    equation, start, times = Equation(), torch.full((8, 2), 0.1), torch.linspace(0, 1, 5)
    results: dict[str, Any] = {}
    for method in ("euler", "srk"):
        noise = torchsde.BrownianInterval(0.0, 1.0, size=(8, 2), entropy=1, levy_area_approximation="space-time")
        path = torchsde.sdeint(equation, start, times, bm=noise, method=method, dt=0.05)
        equation.zero_grad()
        path[-1].square().mean().backward()
        results[method] = {"path": path.mean((1, 2)), "gradient": equation.scale.grad.clone()}
    equation.zero_grad()
    noise = torchsde.BrownianInterval(0.0, 1.0, size=(8, 2), entropy=1)
    torchsde.sdeint_adjoint(equation, start, times, bm=noise, method="euler", dt=0.05)[-1].square().mean().backward()
    return {**results, "adjoint": equation.net.weight.grad}


if __name__ == "__main__":
    run(main)
