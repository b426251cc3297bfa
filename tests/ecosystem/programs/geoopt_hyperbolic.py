"""geoopt: points on the sphere and in the Poincaré ball are found by Riemannian optimizers."""

from __future__ import annotations

from typing import Any

import geoopt
import torch
from harness import run


def main() -> dict[str, Any]:
    sphere, ball = geoopt.Sphere(), geoopt.PoincareBall(c=1.0)
    matrix = torch.randn(6, 6)
    matrix = matrix @ matrix.mT
    point = geoopt.ManifoldParameter(sphere.projx(torch.randn(6)), manifold=sphere)
    place = geoopt.ManifoldParameter(ball.expmap0(torch.randn(4, 3) * 0.1), manifold=ball)
    target = ball.expmap0(torch.randn(4, 3) * 0.3)
    adam = geoopt.optim.RiemannianAdam([place], lr=0.1)
    descent = geoopt.optim.RiemannianSGD([point], lr=0.05, momentum=0.5)
    for _ in range(10):
        adam.zero_grad()
        descent.zero_grad()
        gap = ball.dist(place, target).square().sum()
        value = -point @ matrix @ point
        (gap + value).backward()
        adam.step()
        descent.step()
    return {
        "gap": gap,
        "value": value,
        "norm": point.norm(),
        "mobius": ball.mobius_add(place, target).norm(),
        "type": type(place).__name__,
    }


if __name__ == "__main__":
    run(main)
