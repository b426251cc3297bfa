"""kornia: images are filtered, warped and augmented; an affine registration is learned."""

from __future__ import annotations

from typing import Any

import kornia
import torch
from harness import run


def main() -> dict[str, Any]:
    images = torch.rand(2, 3, 32, 32)
    filtered = {
        "blur": kornia.filters.gaussian_blur2d(images, (5, 5), (1.5, 1.5)),
        "edges": kornia.filters.sobel(images),
        "canny": kornia.filters.canny(images)[1],
        "hsv": kornia.color.rgb_to_hsv(images),
        "lab": kornia.color.rgb_to_lab(images),
        "opening": kornia.morphology.opening(images, torch.ones(3, 3)),
        "corners": kornia.feature.harris_response(images.mean(1, keepdim=True)),
    }
    augment = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomHorizontalFlip(p=0.5), kornia.augmentation.RandomAffine(20.0, p=1.0),
        kornia.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0), data_keys=["input", "mask"],
    )  # fmt: skip
    changed, mask = augment(images, images[:, :1])
    angle = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([angle], lr=1.0)
    target = kornia.geometry.rotate(images, torch.tensor([8.0, -5.0]))
    losses = []
    for _ in range(5):
        loss = (kornia.geometry.rotate(images, angle) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    means = {name: value.mean() for name, value in filtered.items()}
    return {**means, "changed": changed.mean(), "mask": mask.mean(), "losses": losses, "angle": angle}


if __name__ == "__main__":
    run(main)
