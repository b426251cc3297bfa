"""Training steps and single-sample inference of well-known models."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..inputs import fill, integers, normal
from ..workload import Work, Workload

GPT_WIDTH, GPT_LAYERS, GPT_HEADS, GPT_VOCABULARY = 256, 4, 8, 1000


def mlp(xp: Any, *sizes: int) -> Any:
    """Build linear layers with ReLU between them."""
    layers: list[Any] = []
    for before, after in itertools.pairwise(sizes):
        layers += [xp.nn.Linear(before, after), xp.nn.ReLU()]
    return xp.nn.Sequential(*layers[:-1])


def resnet18(xp: Any) -> Any:
    """Build the ResNet-18 of He et al. 2016 for 32 x 32 images: the first convolution is 3 x 3,
    without pooling.
    """
    nn = xp.nn

    class Block(xp.nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = (
                nn.Identity()
                if stride == 1 and before == channels
                else nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))
            )

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.shortcut(x))

    blocks: list[Any] = []
    before = 64
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Block(before, channels, stride), Block(channels, channels, 1)]
        before = channels
    stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def gpt(xp: Any) -> Any:
    """Build a small decoder (Radford et al. 2019): pre-normalization, causal attention, GELU."""
    nn, functional = xp.nn, xp.nn.functional

    class Layer(xp.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(GPT_WIDTH), nn.LayerNorm(GPT_WIDTH)
            self.qkv, self.projection = nn.Linear(GPT_WIDTH, 3 * GPT_WIDTH), nn.Linear(GPT_WIDTH, GPT_WIDTH)
            self.up, self.down = nn.Linear(GPT_WIDTH, 4 * GPT_WIDTH), nn.Linear(4 * GPT_WIDTH, GPT_WIDTH)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (part.view(batch, length, GPT_HEADS, width // GPT_HEADS).transpose(1, 2) for part in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Decoder(xp.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(GPT_VOCABULARY, GPT_WIDTH), nn.Embedding(128, GPT_WIDTH)
            self.layers = nn.Sequential(*(Layer() for _ in range(GPT_LAYERS)))
            self.norm, self.head = nn.LayerNorm(GPT_WIDTH), nn.Linear(GPT_WIDTH, GPT_VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions(xp.arange(tokens.shape[1]))
            return self.head(self.norm(self.layers(x)))

    return Decoder()


def lstm(xp: Any) -> Any:
    """Build an LSTM layer of 64 to 128, and a classifier on its last state."""

    class Classifier(xp.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = xp.nn.LSTM(64, 128), xp.nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][-1])

    return Classifier()


def step(
    build: Callable[[Any], Any], inputs: Any, classes: Any, optimizer: str, **options: Any
) -> Callable[[Any], Work]:
    """Return a step: zero gradients, forward, cross-entropy, backward, optimizer step."""

    def make(xp: Any) -> Work:
        model = fill(xp, build(xp))
        made = getattr(xp.optim, optimizer)(model.parameters(), **options)
        x, y = inputs.make(xp), classes.make(xp)
        loss_function = xp.nn.CrossEntropyLoss()

        def run() -> Any:
            made.zero_grad()
            result = model(x)
            loss = loss_function(result.flatten(0, -2), y.flatten())
            loss.backward()
            made.step()
            return loss.detach()

        return run

    return make


def inference(build: Callable[[Any], Any], inputs: Any) -> Callable[[Any], Work]:
    """Return the inference of a model in evaluation mode."""

    def make(xp: Any) -> Work:
        model = fill(xp, build(xp)).eval()
        x = inputs.make(xp)
        return lambda: model(x)

    return make


#: Operations of a forward pass of one sample: two per multiply-add.
RESNET_OPERATIONS = 2 * 555e6
GPT_PARAMETERS = GPT_LAYERS * 12 * GPT_WIDTH**2 + GPT_WIDTH * GPT_VOCABULARY
GPT_OPERATIONS = 2 * 128 * (GPT_PARAMETERS + GPT_LAYERS * 128 * GPT_WIDTH)


def small_mlp(xp: Any) -> Any:
    """Build an MLP of 64-128-128-10."""
    return mlp(xp, 64, 128, 128, 10)


def large_mlp(xp: Any) -> Any:
    """Build an MLP of 784-2048-2048-10."""
    return mlp(xp, 784, 2048, 2048, 10)


SMALL = 64 * 128 + 128 * 128 + 128 * 10
LARGE = 784 * 2048 + 2048 * 2048 + 2048 * 10


def _training(name: str, make: Callable[[Any], Work], operations: float) -> Workload:
    return Workload(name, make, operations=operations, read=0, written=0, limit=0.55, group="training", tolerance=1e-2)


def _inference(name: str, make: Callable[[Any], Work], operations: float, parameters: float) -> Workload:
    return Workload(
        name, make, operations=operations, read=4.0 * parameters, written=0, recording=False, tolerance=1e-3
    )


WORKLOADS = [
    _training("MLP 64-128-128-10, batch 32, SGD", step(small_mlp, normal(32, 64), integers(10, 32), "SGD", lr=0.01), 6 * 32 * SMALL),
    _training("MLP 64-128-128-10, batch 32, Adam", step(small_mlp, normal(32, 64), integers(10, 32), "Adam", lr=1e-4), 6 * 32 * SMALL),
    _training("MLP 784-2048-2048-10, batch 256, SGD", step(large_mlp, normal(256, 784), integers(10, 256), "SGD", lr=0.01), 6 * 256 * LARGE),
    _training(
        "ResNet-18, 32 x 32, batch 32, SGD", step(resnet18, normal(32, 3, 32, 32), integers(10, 32), "SGD", lr=1e-3, momentum=0.9),
        3 * 32 * RESNET_OPERATIONS,
    ),
    _training(
        "GPT, 4 layers of 256, 8 x 128 tokens, AdamW",
        step(gpt, integers(GPT_VOCABULARY, 8, 128), integers(GPT_VOCABULARY, 8, 128, number=1), "AdamW", lr=1e-4), 3 * 8 * GPT_OPERATIONS,
    ),
    _training(
        "LSTM 64 to 128, 32 steps, batch 32, SGD", step(lstm, normal(32, 32, 64), integers(10, 32), "SGD", lr=0.01),
        6.0 * 32 * 32 * 512 * 192,
    ),
    _inference("MLP 64-128-128-10, one sample", inference(small_mlp, normal(1, 64)), 2 * SMALL, SMALL),
    _inference("MLP 784-2048-2048-10, one sample", inference(large_mlp, normal(1, 784)), 2 * LARGE, LARGE),
    _inference("MLP 784-2048-2048-10, 256 samples", inference(large_mlp, normal(256, 784)), 2 * 256 * LARGE, LARGE),
    _inference("ResNet-18, one image of 32 x 32", inference(resnet18, normal(1, 3, 32, 32)), RESNET_OPERATIONS, 11.2e6),
    _inference("GPT, 1 x 128 tokens", inference(gpt, integers(GPT_VOCABULARY, 1, 128)), GPT_OPERATIONS, GPT_PARAMETERS),
    _inference("GPT, one token", inference(gpt, integers(GPT_VOCABULARY, 1, 1)), 2 * GPT_PARAMETERS, GPT_PARAMETERS),
    _inference("LSTM 64 to 128, 32 steps, one sequence", inference(lstm, normal(32, 1, 64)), 2.0 * 32 * 512 * 192, 512 * 192),
]  # fmt: skip
