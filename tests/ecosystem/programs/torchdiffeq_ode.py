"""torchdiffeq: a neural ordinary differential equation learns a spiral by the adjoint method."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from torchdiffeq import odeint, odeint_adjoint, odeint_event


class Field(torch.nn.Module):
    """A vector field of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y**3)


def main() -> dict[str, Any]:
    times = torch.linspace(0, 2, 12)
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    with torch.no_grad():
        target = odeint(lambda t, y: y @ matrix, torch.tensor([[2.0, 0.0]]), times, method="dopri5")
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        path = odeint_adjoint(field, torch.tensor([[2.0, 0.0]]), times, rtol=1e-4, atol=1e-5)
        loss = (path - target).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    steps = odeint(field, torch.tensor([[1.0, 0.5]]), times, method="rk4")
    event, _ = odeint_event(
        lambda t, y: -torch.ones_like(y),
        torch.tensor([1.0]),
        torch.tensor(0.0),
        event_fn=lambda t, y: y[0],
        atol=1e-6,
        rtol=1e-6,
    )
    return {"losses": losses, "target": target[-1], "steps": steps[-1], "event": event}


if __name__ == "__main__":
    run(main)
