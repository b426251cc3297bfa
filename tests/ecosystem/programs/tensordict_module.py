"""tensordict: batches of named tensors are indexed, stacked, mapped, stored and run in modules."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from harness import run
from tensordict import TensorDict, from_module, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential


@tensorclass
class Sample:
    """An image and its label."""

    image: torch.Tensor
    label: torch.Tensor


def main() -> dict[str, Any]:
    data = TensorDict({"x": torch.randn(8, 4), "inner": {"y": torch.arange(8)}}, batch_size=[8])
    stacked = torch.stack([data, data.clone()], 0)
    first = TensorDictModule(torch.nn.Linear(4, 6), in_keys=["x"], out_keys=["hidden"])
    second = TensorDictModule(torch.nn.Linear(6, 2), in_keys=["hidden"], out_keys=["answer"])
    net = TensorDictSequential(first, torch.tanh and second)
    answer = net(data.clone())["answer"]
    answer.square().mean().backward()
    weights = from_module(net)
    doubled = weights.apply(lambda p: p.detach() * 2)
    with doubled.to_module(net):
        twice = net(data.clone())["answer"]
    samples = Sample(image=torch.rand(4, 2, 2), label=torch.arange(4), batch_size=[4])
    with tempfile.TemporaryDirectory() as folder:
        data.memmap(folder)
        kept = TensorDict.load_memmap(folder)["inner", "y"].clone()
    return {
        "answer": answer, "twice": twice, "gradient": first.module.weight.grad, "kept": kept, "shape": list(stacked.shape),
        "samples": samples[1:3].image.sum(), "keys": sorted(map(str, data.keys(True, True))),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
