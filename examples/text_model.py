"""Train two character-level language models on the source code of Python's standard library: an
LSTM and a small GPT.

Prints the bits a character of text that was not trained on costs each of them, a sample of what
each writes, and draws the curves into ``text_model.png``.
"""

from __future__ import annotations

import argparse
import math
import sysconfig
import time
from pathlib import Path

from tqdm import tqdm

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F

#: Printable ASCII and the line feed; other characters are dropped.
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))


def load(size: int) -> candelabra.Tensor:
    """Return the characters of Python's library as indices in the alphabet."""
    codes = {character: code for code, character in enumerate(ALPHABET)}
    numbers: list[int] = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        numbers += [codes[character] for character in text if character in codes]
        if len(numbers) >= size:
            break
    return candelabra.tensor(numbers[:size])


class Recurrent(nn.Module):
    """Embedding, LSTM and linear layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), width // 2)
        self.recur = nn.LSTM(width // 2, width, batch_first=True)
        self.predict = nn.Linear(width, len(ALPHABET))

    def forward(self, text: candelabra.Tensor) -> candelabra.Tensor:
        return self.predict(self.recur(self.embed(text))[0])


class Block(nn.Module):
    """A transformer block: causal attention and a feed-forward network, both with residual
    connections.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_net = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: candelabra.Tensor) -> candelabra.Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.project(self.norm_attention(x)).chunk(3, -1)
        )
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(attended.transpose(1, 2).flatten(2))
        return x + self.net(self.norm_net(x))


class Transformer(nn.Module):
    """A small GPT: token and position embeddings, blocks, and a linear layer."""

    def __init__(self, width: int, context: int, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(len(ALPHABET), width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.predict = nn.Linear(width, len(ALPHABET))

    def forward(self, text: candelabra.Tensor) -> candelabra.Tensor:
        places = self.places(candelabra.arange(text.shape[1], device=text.device))
        return self.predict(self.norm(self.blocks(self.characters(text) + places)))


def batches(text: candelabra.Tensor, count: int, batch: int, context: int) -> candelabra.Tensor:
    """Return random pieces of the text, one character longer than the context."""
    starts = candelabra.randint(len(text) - context - 1, (count, batch, 1))
    return text[starts + candelabra.arange(context + 1)]


def bits(model: nn.Module, pieces: candelabra.Tensor) -> candelabra.Tensor:
    """Return the cross-entropy of each character given those before it, in bits."""
    return F.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten()) / math.log(2)


@candelabra.no_grad()
def write(model: nn.Module, start: str, length: int, context: int) -> str:
    """Continue a text, character by character, sampled from the model's predictions."""
    text = candelabra.tensor([[ALPHABET.index(character) for character in start]])
    for _ in range(length):
        probabilities = F.softmax(model(text[:, -context:])[0, -1] / 0.7, -1)
        text = candelabra.cat([text, candelabra.multinomial(probabilities, 1)[None]], 1)
    return "".join(ALPHABET[code] for code in text[0].tolist())


def train(name: str, model: nn.Module, text: candelabra.Tensor, steps: int, batch: int, context: int) -> list[float]:
    """Train with AdamW and a one-cycle learning rate; return the bits per character at each
    step.
    """
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    history = []
    for pieces in tqdm(batches(text, steps, batch, context), desc=name, unit="step"):
        loss = bits(model, pieces)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        history.append(loss.item())
    return history


def draw(path: Path, histories: dict[str, list[float]], scores: dict[str, float]) -> None:
    """Plot the bits per character during training."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for (name, history), color in zip(histories.items(), ("#d9480f", "#1971c2")):
        window = max(len(history) // 50, 1)
        smooth = [sum(history[i : i + window]) / window for i in range(len(history) - window + 1)]
        axes.plot(range(window, len(history) + 1), smooth, color=color, label=f"{name}: {scores[name]:.2f} on new text")
    axes.set(xlabel="step", ylabel="bits a character", title="Learning to write Python's library")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--characters", type=int, default=2_000_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=Path("output"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    candelabra.set_default_device(options.device)
    candelabra.manual_seed(0)
    text = load(options.characters)
    learned, new = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    exam = batches(new, 1, 256, options.context)[0]
    models = {"LSTM": Recurrent(2 * options.width), "GPT": Transformer(options.width, options.context)}
    histories, scores = {}, {}
    for name, model in models.items():
        begin = time.perf_counter()
        histories[name] = train(name, model, learned, options.steps, options.batch, options.context)
        seconds = time.perf_counter() - begin
        model.eval()
        with candelabra.no_grad():
            scores[name] = bits(model, exam).item()
        speed = options.steps * options.batch * options.context / seconds
        print(f"{name}: {sum(p.numel() for p in model.parameters()):,} parameters, {speed:,.0f} characters/s, ", end="")
        print(f"{scores[name]:.2f} bits a character of new text ({math.log2(len(ALPHABET)):.2f} by guessing)")
        print(write(model, "def ", 200, options.context), end="\n\n")
    draw(options.output / "text_model.png", histories, scores)
    print(f"curves: {options.output / 'text_model.png'}")


if __name__ == "__main__":
    main()
