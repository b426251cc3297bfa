"""fvcore: losses of detection, counts of parameters, schedules and checkpoints."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from fvcore.common.checkpoint import Checkpointer
from fvcore.common.param_scheduler import CompositeParamScheduler, CosineParamScheduler, LinearParamScheduler
from fvcore.nn import c2_msra_fill, giou_loss, parameter_count, sigmoid_focal_loss, smooth_l1_loss
from harness import run


def main() -> dict[str, Any]:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1))
    for layer in (net[0], net[2]):
        c2_msra_fill(layer)
    found = net(torch.randn(2, 3, 8, 8))
    boxes = torch.rand(6, 4)
    boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:] + 0.1], 1)
    losses = {
        "focal": sigmoid_focal_loss(found, (found > 0).float(), reduction="mean"), "giou": giou_loss(boxes, boxes.flip(0), reduction="mean"),
        "smooth": smooth_l1_loss(found, torch.zeros_like(found), 0.5, reduction="mean"),
    }  # fmt: skip
    torch.stack(list(losses.values())).sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        Checkpointer(net, folder).save("net")
        other = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1))
        Checkpointer(other, folder).load(f"{folder}/net.pth")
    schedule = CompositeParamScheduler(
        [LinearParamScheduler(0.0, 1.0), CosineParamScheduler(1.0, 0.0)], [0.2, 0.8], ["rescaled", "rescaled"]
    )
    return {
        **losses, "gradient": net[0].weight.grad.norm(), "parameters": parameter_count(net)[""],
        "same": torch.equal(other[0].weight, net[0].weight), "rates": [schedule(step / 5) for step in range(5)],
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
