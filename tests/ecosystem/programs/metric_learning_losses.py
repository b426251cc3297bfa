"""pytorch-metric-learning: mined triplets, eight losses and accuracy of nearest neighbours."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from pytorch_metric_learning import distances, losses, miners, reducers


def main() -> dict[str, Any]:
    net = torch.nn.Linear(16, 8)
    data, labels = torch.randn(32, 16), torch.arange(32) % 4
    similar = distances.CosineSimilarity()
    miner = miners.TripletMarginMiner(margin=0.2, distance=similar, type_of_triplets="semihard")
    kinds = {
        "triplet": losses.TripletMarginLoss(margin=0.2, distance=similar, reducer=reducers.AvgNonZeroReducer()),
        "contrastive": losses.ContrastiveLoss(), "multi": losses.MultiSimilarityLoss(), "ntxent": losses.NTXentLoss(),
        "circle": losses.CircleLoss(), "supcon": losses.SupConLoss(), "arcface": losses.ArcFaceLoss(4, 8), "proxy": losses.ProxyNCALoss(4, 8),
    }  # fmt: skip
    results: dict[str, Any] = {}
    for name, loss_of in kinds.items():
        net.zero_grad()
        embedded = net(data)
        loss = loss_of(embedded, labels, miner(embedded, labels)) if name == "triplet" else loss_of(embedded, labels)
        loss.backward()
        results[name] = [loss, net.weight.grad.norm()]
    return results


if __name__ == "__main__":
    run(main)
