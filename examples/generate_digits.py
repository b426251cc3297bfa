"""Teach two nets to draw digits: a variational autoencoder (Kingma and Welling 2013), and a pair of
adversaries whose judge is held to gradients of length one (WGAN-GP, Gulrajani et al. 2017), which
needs the gradient of a gradient.

Prints what each has learned and draws samples of both beside real digits into
``generate_digits.png``. Data: scikit-learn's digits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import candelabra
from candelabra import autograd, nn, optim
from candelabra.nn import functional as F


class Autoencoder(nn.Module):
    """Encode images to the mean and standard deviation of a few latent numbers, and decode them."""

    def __init__(self, numbers: int = 8) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2 * numbers))
        self.decode = nn.Sequential(nn.Linear(numbers, 256), nn.ReLU(), nn.Linear(256, 64))
        self.numbers = numbers

    def forward(self, images: candelabra.Tensor) -> tuple[candelabra.Tensor, candelabra.Tensor]:
        """Return the logits of the pixels, and the KL divergence of the latent numbers from a
        standard normal distribution, in nats per image.
        """
        mean, log_variance = self.encode(images).chunk(2, -1)
        drawn = mean + candelabra.exp(0.5 * log_variance) * candelabra.randn_like(mean)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1).mean()
        return self.decode(drawn), divergence

    def sample(self, count: int) -> candelabra.Tensor:
        return self.decode(candelabra.randn(count, self.numbers)).sigmoid()


def train_autoencoder(images: candelabra.Tensor, steps: int, batch: int = 128) -> tuple[Autoencoder, list[float]]:
    """Maximize the evidence lower bound; return the negative bound of each step."""
    model = Autoencoder()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for _ in tqdm(range(steps), desc="autoencoder", unit="step"):
        chosen = images[candelabra.randint(len(images), (batch,))]
        logits, divergence = model(chosen)
        loss = F.binary_cross_entropy_with_logits(logits, chosen, reduction="sum") / batch + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return model, history


def penalty(judge: nn.Module, real: candelabra.Tensor, drawn: candelabra.Tensor) -> candelabra.Tensor:
    """Return the gradient penalty: how far the critic's gradient is from length one, between real
    and generated images.
    """
    mixed = candelabra.lerp(drawn, real, candelabra.rand(len(real), 1)).requires_grad_()
    (gradient,) = autograd.grad(judge(mixed).sum(), mixed, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


def train_adversaries(
    images: candelabra.Tensor, rounds: int, batch: int = 64, noise: int = 16
) -> tuple[nn.Module, list[float]]:
    """Train the generator against its critic; return the generator, and the critic's estimate of
    the distance between real and generated images in each round.
    """
    forger = nn.Sequential(
        nn.Linear(noise, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64), nn.Sigmoid()
    )
    judge = nn.Sequential(
        nn.Linear(64, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
    )
    forging = optim.Adam(forger.parameters(), lr=3e-4, betas=(0.5, 0.9))
    judging = optim.Adam(judge.parameters(), lr=3e-4, betas=(0.5, 0.9))
    history, distance = [], candelabra.zeros(())
    for _ in tqdm(range(rounds), desc="adversaries", unit="round"):
        for _ in range(3):
            real = images[candelabra.randint(len(images), (batch,))]
            with candelabra.no_grad():
                drawn = forger(candelabra.randn(batch, noise))
            distance = judge(real).mean() - judge(drawn).mean()
            judging.zero_grad()
            (10 * penalty(judge, real, drawn) - distance).backward()
            judging.step()
        forging.zero_grad()
        (-judge(forger(candelabra.randn(batch, noise))).mean()).backward()
        forging.step()
        history.append(distance.item())
    return forger, history


def spread(images: candelabra.Tensor, drawn: candelabra.Tensor) -> float:
    """Return the root mean square distance of generated images from the nearest real one, in grey
    levels from 0 to 1 per pixel.
    """
    return (candelabra.cdist(drawn, images).min(dim=1).values.square().mean() / 64).sqrt().item()


def draw(path: Path, rows: dict[str, candelabra.Tensor]) -> None:
    """Plot a row of twelve images for each model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, cells = plt.subplots(len(rows), 12, figsize=(12, 1.35 * len(rows)), layout="constrained")
    for row, (name, images) in zip(cells, rows.items(), strict=True):
        for cell, image in zip(row, images.reshape(-1, 8, 8).numpy(force=True), strict=True):
            cell.imshow(image, cmap="gray_r", interpolation="nearest")
            cell.axis("off")
        row[0].set_title(name, loc="left", fontsize=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=2500)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=Path("output"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    candelabra.set_default_device(options.device)
    candelabra.manual_seed(0)
    images = candelabra.from_numpy((load_digits().data / 16).astype(np.float32)).to(options.device)
    model, bounds = train_autoencoder(images, options.steps)
    forger, distances = train_adversaries(images, options.rounds)
    with candelabra.no_grad():
        invented, forged = model.sample(500), forger(candelabra.randn(500, 16))
        noise = spread(images, candelabra.rand(500, 64))
        print(f"autoencoder: {bounds[0]:.1f} nats an image at first, {np.mean(bounds[-50:]):.1f} at last")
        print(f"adversaries: distance {np.mean(distances[:20]):.2f} at first, {np.mean(distances[-50:]):.2f} at last")
        near = {"autoencoder": spread(images, invented), "adversaries": spread(images, forged), "random pixels": noise}
        print(
            "distance from the nearest digit: " + ", ".join(f"{name} {distance:.3f}" for name, distance in near.items())
        )
    picture = options.output / "generate_digits.png"
    draw(picture, {"real": images[:12], "autoencoder": invented[:12], "adversaries": forged[:12]})
    print(f"samples: {picture}")


if __name__ == "__main__":
    main()
