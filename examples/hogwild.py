"""Train one network on scikit-learn's handwritten digits with several processes that write its
parameters concurrently, without locks.

Hogwild (Niu, Recht, Ré and Wright, 2011): the parameters are in shared memory, each process takes
steps of gradient descent on its own batches, and steps that meet overwrite a little of each other.
Prints the accuracy before and after, and how many steps a second were made by all together.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import candelabra
from candelabra import multiprocessing as mp
from candelabra import nn, optim
from candelabra.nn import functional as F


def make_net() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def load() -> tuple[candelabra.Tensor, candelabra.Tensor, candelabra.Tensor, candelabra.Tensor]:
    """Return images of shape (N, 64) from 0 to 1 with their digits, three quarters for training and
    one for testing.
    """
    data = load_digits()
    images = (data.images / 16).astype(np.float32).reshape(-1, 64)
    parts = train_test_split(images, data.target.astype(np.int64), test_size=0.25, random_state=0, stratify=data.target)
    train_x, test_x, train_y, test_y = (candelabra.from_numpy(np.ascontiguousarray(part)) for part in parts)
    return train_x, train_y, test_x, test_y


@candelabra.no_grad()
def accuracy(net: nn.Module, images: candelabra.Tensor, digits: candelabra.Tensor) -> float:
    return (net(images).argmax(1) == digits).float().mean().item()


def train(
    index: int, net: nn.Module, images: candelabra.Tensor, digits: candelabra.Tensor, steps: Any, options: Any
) -> None:
    """Train in one process: its own batches and gradients, shared parameters."""
    candelabra.manual_seed(options.seed + index)
    if images.device.type == "cpu":
        candelabra.set_num_threads(1)  # the processes share the cores
    # Gradients are private to the process; the parameters are shared.
    optimizer = optim.SGD(net.parameters(), lr=options.rate)
    for _ in range(options.epochs):
        order = candelabra.randperm(len(images), device=images.device)
        for first in range(0, len(images), options.batch):
            chosen = order[first : first + options.batch]
            loss = F.cross_entropy(net(images[chosen]), digits[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # Each process counts its steps in an element of its own.
            steps[index] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=10, help="passes over the images, in each process")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--device", default="cpu", help="where the parameters are, which the processes share there as well"
    )
    options = parser.parse_args()

    candelabra.manual_seed(options.seed)
    train_x, train_y, test_x, test_y = (part.to(options.device) for part in load())
    net = make_net().to(options.device).share_memory()
    steps = candelabra.zeros(options.processes, dtype=candelabra.int64).share_memory_()
    before = accuracy(net, test_x, test_y)
    start = time.perf_counter()
    mp.spawn(train, args=(net, train_x, train_y, steps, options), nprocs=options.processes)
    seconds = time.perf_counter() - start
    print(
        f"{options.processes} processes took {steps.sum().item()} steps on one set of parameters in {seconds:.1f} s, starting included"
    )
    print(f"test accuracy {before:.2%} before, {accuracy(net, test_x, test_y):.2%} after")


if __name__ == "__main__":
    main()
