"""performer-pytorch: attention by random features in a language model, trained."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from performer_pytorch import Performer, PerformerLM


def main() -> dict[str, Any]:
    model = PerformerLM(
        num_tokens=32, max_seq_len=32, dim=32, depth=2, heads=2, nb_features=16, feature_redraw_interval=None
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    tokens = torch.arange(4 * 32).reshape(4, 32) * 5 % 31
    losses = []
    for _ in range(5):
        scores = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.transpose(1, 2), tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    reversible = Performer(dim=32, depth=2, heads=2, dim_head=16, nb_features=16, reversible=True)
    data = torch.randn(1, 16, 32, requires_grad=True)
    reversible(data).square().mean().backward()
    return {"losses": losses, "reversible": data.grad.norm()}


if __name__ == "__main__":
    run(main)
