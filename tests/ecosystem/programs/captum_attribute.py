"""captum: attributions of a small convolutional network by six methods."""

from __future__ import annotations

from typing import Any

import torch
from captum.attr import (
    DeepLift,
    GuidedBackprop,
    IntegratedGradients,
    LayerGradCam,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from harness import run
from torch import nn


class Net(nn.Module):
    """A convolution and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu, self.pool, self.last = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Linear(36, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.pool(self.relu(self.conv(x))).flatten(1))


def main() -> dict[str, Any]:
    net = Net().eval()
    image = torch.rand(2, 1, 8, 8, requires_grad=True)
    gradients, gap = IntegratedGradients(net).attribute(image, target=1, n_steps=20, return_convergence_delta=True)
    results = {
        "integrated": gradients, "gap": gap, "saliency": Saliency(net).attribute(image, target=0),
        "deeplift": DeepLift(net).attribute(image, target=1, baselines=torch.zeros_like(image)),
        "guided": GuidedBackprop(net).attribute(image, target=2),
        "cam": LayerGradCam(net, net.conv).attribute(image, target=1),
        "occlusion": Occlusion(net).attribute(image, (1, 4, 4), strides=(1, 4, 4), target=1),
        "shapley": ShapleyValueSampling(lambda x: net(x.reshape(-1, 1, 8, 8))).attribute(image.flatten(1)[:1, :64], target=0, n_samples=2),
    }  # fmt: skip
    return {name: value.abs().mean() for name, value in results.items()}


if __name__ == "__main__":
    run(main)
