"""torchvision: a ResNet is trained on transformed images, saved and loaded; boxes are selected."""

from __future__ import annotations

import io
from typing import Any

import torch
import torchvision
from harness import run
from torchvision.transforms import v2


def main() -> dict[str, Any]:
    # On 32 x 32 pixels, the last batch normalizations have four numbers each: rounding then changes
    # the third loss by a hundredth.
    change = v2.Compose([
        v2.RandomHorizontalFlip(), v2.Resize((72, 72), antialias=True), v2.CenterCrop(64), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ])  # fmt: skip
    images = change(torch.randint(0, 256, (4, 3, 48, 48), dtype=torch.uint8))
    model = torchvision.models.resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    losses = []
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([0, 1, 2, 3]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = torchvision.models.resnet18(num_classes=10)
    other.load_state_dict(torch.load(file))
    scores = other.eval()(images).softmax(-1)[0]
    boxes = torch.rand(50, 4) * 20
    boxes[:, 2:] += boxes[:, :2]
    kept = torchvision.ops.nms(boxes, torch.rand(50), 0.3)
    pooled = torchvision.ops.roi_align(images, [boxes[:2]] * 4, 3)
    return {"images": images.mean(), "losses": losses, "scores": scores, "kept": kept, "pooled": pooled.abs().mean()}


if __name__ == "__main__":
    run(main)
