"""segmentation-models-pytorch: a U-Net learns masks by Dice loss and is evaluated."""

from __future__ import annotations

import tempfile
from typing import Any

import segmentation_models_pytorch as smp
import torch
from harness import run


def main() -> dict[str, Any]:
    model = smp.Unet(
        "resnet18", encoder_weights=None, in_channels=1, classes=1, encoder_depth=3, decoder_channels=(32, 16, 8)
    )
    loss_of = smp.losses.DiceLoss(mode="binary")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images = torch.randn(2, 1, 32, 32)
    masks = (images > 0.5).float()
    losses = []
    for _ in range(3):
        loss = loss_of(model(images), masks) + smp.losses.FocalLoss("binary")(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = smp.from_pretrained(folder).eval()
    scores = smp.metrics.get_stats((loaded(images).sigmoid() > 0.5).long(), masks.long(), mode="binary")
    return {"losses": losses, "iou": smp.metrics.iou_score(*scores, reduction="micro")}


if __name__ == "__main__":
    run(main)
