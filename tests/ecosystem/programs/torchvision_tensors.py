"""torchvision: detection by a small Faster R-CNN, tensors with boxes and masks, and video
models.
"""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from torchvision import models, ops, tv_tensors, utils
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.transforms import v2


def main() -> dict[str, Any]:
    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, stride=8, padding=1), torch.nn.ReLU())
    backbone.out_channels = 16  # type: ignore[assignment]
    anchors = AnchorGenerator(sizes=((16, 32),), aspect_ratios=((1.0,),))
    pool = ops.MultiScaleRoIAlign(["0"], output_size=3, sampling_ratio=2)
    net = FasterRCNN(
        backbone,
        3,
        rpn_anchor_generator=anchors,
        box_roi_pool=pool,
        min_size=64,
        max_size=64,
        box_batch_size_per_image=16,
    )
    images = torch.rand(2, 3, 64, 64)
    targets = [{"boxes": torch.tensor([[8.0, 8, 40, 40]]), "labels": torch.tensor([1])} for _ in range(2)]
    losses = net(images, targets)
    sum(losses.values()).backward()
    boxes = tv_tensors.BoundingBoxes([[4, 4, 20, 20]], format="XYXY", canvas_size=(64, 64))
    image, moved = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.Resize(32)])(tv_tensors.Image(images[0]), boxes)
    deformed = ops.deform_conv2d(images, torch.zeros(2, 18, 62, 62), torch.randn(4, 3, 3, 3))
    net.eval()
    found = net(images)
    return {
        "losses": losses, "gradient": backbone[0].weight.grad.norm(), "moved": moved.as_subclass(torch.Tensor), "image": list(image.shape),
        "deformed": deformed.std(), "found": len(found), "grid": list(utils.make_grid(images).shape),
        "iou": ops.generalized_box_iou(targets[0]["boxes"], targets[0]["boxes"] + 4), "names": len(models.list_models()) > 50,
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
