"""timm: a vision transformer and a ConvNeXt are trained with timm's optimizer and schedule."""

from __future__ import annotations

from typing import Any

import timm
import timm.optim
import timm.scheduler
import torch
from harness import run


def main() -> dict[str, Any]:
    results: dict[str, Any] = {}
    images, labels = torch.randn(4, 3, 32, 32), torch.arange(4)
    options: dict[str, dict[str, Any]] = {
        "vit_tiny_patch16_224": {"img_size": 32, "patch_size": 8, "depth": 2},
        "convnext_atto": {"depths": (1, 1, 1, 1)},
        "resnet18": {},
    }
    for name, settings in options.items():
        model = timm.create_model(name, pretrained=False, num_classes=5, **settings)
        optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
        schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=5, warmup_t=1, warmup_lr_init=1e-4)
        losses = []
        for epoch in range(3):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step(epoch + 1)
            losses.append(loss.item())
        features = model.eval().forward_features(images)
        results[name] = {"losses": losses, "features": features.mean()}
    return results


if __name__ == "__main__":
    run(main)
