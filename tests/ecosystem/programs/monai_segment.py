"""monai: a three-dimensional U-Net, Dice loss, transforms, sliding windows and metrics."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from harness import run
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, NormalizeIntensity, RandFlip, RandGaussianNoise, ScaleIntensity

warnings.filterwarnings("ignore")


def main() -> dict[str, Any]:
    volume = torch.rand(1, 24, 24, 24)
    change = Compose(
        [ScaleIntensity(), NormalizeIntensity(), RandFlip(prob=1.0, spatial_axis=0), RandGaussianNoise(prob=0.0)]
    )
    changed = torch.as_tensor(change(volume)).as_subclass(torch.Tensor)[None]
    labels = (changed > 0.5).long()
    net = UNet(3, 1, 2, channels=(8, 16), strides=(2,), num_res_units=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    loss_of = DiceCELoss(to_onehot_y=True, softmax=True)
    losses = []
    for _ in range(3):
        loss = loss_of(net(changed[..., :16, :16, :16]), labels[..., :16, :16, :16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        found = sliding_window_inference(changed, (16, 16, 16), 2, net.eval(), overlap=0.25).argmax(1, keepdim=True)
    metric = DiceMetric(include_background=False, num_classes=2)
    metric(found, labels)
    return {"losses": losses, "dice": metric.aggregate(), "changed": changed.mean()}


if __name__ == "__main__":
    run(main)
