"""Train a small convolutional network on scikit-learn's handwritten digits (1,797 images of 8 by 8
pixels, UCI ML hand-written digits data).

Prints the accuracy on images that were not trained on, saves and reloads a checkpoint, and draws
the loss curve with a grid of predictions into ``digits.png``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F


class DigitNet(nn.Module):
    """Two convolutions and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(
            nn.Flatten(), nn.Linear(64 * 4 * 4, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10)
        )

    def forward(self, images: candelabra.Tensor) -> candelabra.Tensor:
        return self.classify(self.features(images))


def load(device: str) -> tuple[candelabra.Tensor, candelabra.Tensor, candelabra.Tensor, candelabra.Tensor]:
    """Return images of shape (N, 1, 8, 8) from 0 to 1 with their digits, three quarters for
    training and one for testing.
    """
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    parts = train_test_split(images, data.target.astype(np.int64), test_size=0.25, random_state=0, stratify=data.target)
    train_x, test_x, train_y, test_y = (candelabra.from_numpy(np.ascontiguousarray(part)).to(device) for part in parts)
    return train_x, train_y, test_x, test_y


@candelabra.no_grad()
def accuracy(model: nn.Module, images: candelabra.Tensor, digits: candelabra.Tensor) -> float:
    model.eval()
    correct = (model(images).argmax(1) == digits).sum().item()
    model.train()
    return correct / len(digits)


def train(
    model: nn.Module, images: candelabra.Tensor, digits: candelabra.Tensor, epochs: int, batch: int = 64
) -> tuple[list[float], optim.Optimizer]:
    """Train with Adam and a one-cycle learning rate; return the loss of each step, and the
    optimizer.
    """
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    steps = epochs * -(-len(images) // batch)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    losses: list[float] = []
    with tqdm(total=steps, desc="training", unit="step") as progress:
        for epoch in range(epochs):
            order = candelabra.randperm(len(images)).to(images.device)
            for first in range(0, len(images), batch):
                chosen = order[first : first + batch]
                loss = F.cross_entropy(model(images[chosen]), digits[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                progress.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.4f}", refresh=False)
                progress.update()
    return losses, optimizer


def draw(
    path: Path,
    losses: list[float],
    images: candelabra.Tensor,
    digits: candelabra.Tensor,
    predicted: candelabra.Tensor,
    title: str,
) -> None:
    """Plot the loss of each step, and forty test images with their predictions, wrong ones first
    and in red.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pixels, truth, guess = images.cpu().numpy()[:, 0], digits.cpu().numpy(), predicted.cpu().numpy()
    wrong_first = np.argsort(truth == guess, kind="stable")[:40]
    figure = plt.figure(figsize=(13, 5.2), layout="constrained")
    figure.suptitle(title, fontsize=14)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[1, 1.15])[0]
    axes = left.subplots()
    axes.plot(losses, color="#c9c9c9", linewidth=0.8, label="each step")
    window = max(len(losses) // 40, 1)
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    axes.plot(
        np.arange(len(smooth)) + window - 1, smooth, color="#d9480f", linewidth=2, label=f"mean of {window} steps"
    )
    axes.set(xlabel="step", ylabel="cross-entropy", yscale="log", title="Training loss")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    for cell, i in zip(right.subplots(5, 8).flat, wrong_first, strict=True):
        right_answer = truth[i] == guess[i]
        cell.imshow(pixels[i], cmap="gray_r", interpolation="nearest")
        cell.set_title(
            str(guess[i]) if right_answer else f"{guess[i]} not {truth[i]}",
            fontsize=10,
            color="black" if right_answer else "#e03131",
        )
        cell.axis("off")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("output"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    candelabra.manual_seed(options.seed)
    train_x, train_y, test_x, test_y = load(options.device)
    model = DigitNet().to(options.device)
    print(
        f"{len(train_x)} images to train on, {len(test_x)} to test; {sum(p.numel() for p in model.parameters()):,} parameters"
    )

    start = time.perf_counter()
    losses, optimizer = train(model, train_x, train_y, options.epochs)
    seconds = time.perf_counter() - start

    # Test the model as it was loaded from disk.
    checkpoint = options.output / "digits.candelabra"
    candelabra.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)
    restored = DigitNet().to(options.device)
    restored.load_state_dict(candelabra.load(checkpoint)["model"])
    score = accuracy(restored, test_x, test_y)
    assert score == accuracy(model, test_x, test_y), "the reloaded model answers otherwise than the one that was saved"

    restored.eval()
    with candelabra.no_grad():
        predicted = restored(test_x).argmax(1)
    picture = options.output / "digits.png"
    draw(
        picture,
        losses,
        test_x,
        test_y,
        predicted,
        f"Candelabra on handwritten digits: {score:.2%} of {len(test_x)} test images right",
    )
    print(f"test accuracy {score:.2%}, trained in {seconds:.1f} s ({len(losses) / seconds:.0f} steps/s)")
    print(f"checkpoint {checkpoint}, picture {picture}")


if __name__ == "__main__":
    main()
