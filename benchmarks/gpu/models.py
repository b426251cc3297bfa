"""Mixed-precision training steps of ResNet-50 and GPT-2 small, for either framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: The number of blocks in the four stages, and a block's ratio of output to inner channels.
RESNET_STAGES, EXPANSION = (3, 4, 6, 3), 4


def resnet50(xp: Any, classes: int = 1000, width: int = 64, stages: tuple[int, ...] = RESNET_STAGES) -> Any:
    """Build the ResNet-50 of He et al. 2016, with the stride in the 3 x 3 convolution."""
    nn = xp.nn

    class Bottleneck(xp.nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, inside: int, stride: int) -> None:
            super().__init__()
            after = EXPANSION * inside
            self.inside = nn.Sequential(
                nn.Conv2d(before, inside, 1, bias=False), nn.BatchNorm2d(inside), nn.ReLU(inplace=True),
                nn.Conv2d(inside, inside, 3, stride, 1, bias=False), nn.BatchNorm2d(inside), nn.ReLU(inplace=True),
                nn.Conv2d(inside, after, 1, bias=False), nn.BatchNorm2d(after),
            )  # fmt: skip
            self.shortcut = (
                nn.Identity()
                if stride == 1 and before == after
                else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            )
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.relu(self.inside(x) + self.shortcut(x))

    layers: list[Any] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    before = width
    for number, count in enumerate(stages):
        inside = width * 2**number
        for block in range(count):
            layers.append(Bottleneck(before, inside, 2 if number and not block else 1))
            before = EXPANSION * inside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def gpt2(
    xp: Any, layers: int = 12, width: int = 768, heads: int = 12, vocabulary: int = 50304, context: int = 1024
) -> Any:
    """Build the GPT-2 of Radford et al. 2019. The head shares the embedding's weights, and the
    vocabulary is a multiple of 128.
    """
    nn, functional = xp.nn, xp.nn.functional

    class Layer(xp.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Decoder(xp.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.layers = nn.Sequential(*(Layer() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions(xp.arange(tokens.shape[1], device=tokens.device))
            return self.head(self.norm(self.layers(x)))

    return Decoder()


def training_step(xp: Any, model: Any, x: Any, y: Any, optimizer: Any) -> Callable[[], Any]:
    """Return a training step: forward in bfloat16, cross-entropy, backward, optimizer step."""
    device = x.device.type

    def run() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with xp.autocast(device, dtype=xp.bfloat16):
            loss = xp.nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run


def resnet_step(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
    """Build a step of ResNet-50 on 64 images of 224 x 224, with SGD and momentum."""
    batch, side = (2, 32) if tiny else (64, 224)
    model = (resnet50(xp, 10, 8, (1, 1, 1, 1)) if tiny else resnet50(xp)).to(device)
    x = xp.randn(batch, 3, side, side, device=device)
    y = xp.randint(10, (batch,), device=device)
    return training_step(xp, model, x, y, xp.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


def gpt_step(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
    """Build a step of GPT-2 small on 8 texts of 1024 tokens, with AdamW."""
    batch, length = (1, 16) if tiny else (8, 1024)
    model = (gpt2(xp, 1, 32, 2, 64, length) if tiny else gpt2(xp)).to(device)
    high = 64 if tiny else 50257
    x, y = (xp.randint(high, (batch, length), device=device) for _ in range(2))
    return training_step(xp, model, x, y, xp.optim.AdamW(model.parameters(), lr=1e-4))
