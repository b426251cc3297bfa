"""torchmetrics: metrics of classes, regression, images and texts, stored and loaded."""

from __future__ import annotations

from typing import Any

import torch
import torchmetrics
from harness import run
from torchmetrics.functional.image import structural_similarity_index_measure


def main() -> dict[str, Any]:
    metrics = torchmetrics.MetricCollection({
        "accuracy": torchmetrics.classification.MulticlassAccuracy(5),
        "auroc": torchmetrics.classification.MulticlassAUROC(5),
        "f1": torchmetrics.classification.MulticlassF1Score(5, average="macro"),
        "confusion": torchmetrics.classification.MulticlassConfusionMatrix(5),
        "calibration": torchmetrics.classification.MulticlassCalibrationError(5),
    })  # fmt: skip
    for _ in range(5):
        metrics.update(torch.randn(64, 5).softmax(-1), torch.randint(0, 5, (64,)))
    values = metrics.compute()
    regression = torchmetrics.MetricCollection(
        [torchmetrics.R2Score(), torchmetrics.PearsonCorrCoef(), torchmetrics.SpearmanCorrCoef()]
    )
    target = torch.randn(100)
    values |= regression(target + torch.randn(100), target)
    images = torch.rand(2, 3, 32, 32)
    values["ssim"] = structural_similarity_index_measure(
        images, (images + 0.1 * torch.rand_like(images)), data_range=1.0
    )
    mean = torchmetrics.MeanMetric()
    mean.persistent(True)
    mean.update(torch.arange(5.0))
    other = torchmetrics.MeanMetric()
    other.persistent(True)
    other.load_state_dict(mean.state_dict())
    values["perplexity"] = torchmetrics.text.Perplexity()(torch.randn(2, 8, 5), torch.randint(0, 5, (2, 8)))
    return {**values, "mean": other.compute()}


if __name__ == "__main__":
    run(main)
