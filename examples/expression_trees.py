"""A net whose structure changes at every step: it is built along the tree of an arithmetic
expression, and learns to evaluate it.

A number becomes a vector, an operator joins the vectors of its two sides by a net of its own, and
the vector of the whole is read off as the value. Every expression is another net; the tape follows
whatever Python does. Prints the error on new expressions, some deeper than those trained on, before
and after.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

import candelabra
from candelabra import nn, optim


@dataclass(frozen=True)
class Join:
    """An operator with its two operands."""

    sign: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


Expression = Join | float
OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "min": min,
    "max": max,
}


def grow(dice: random.Random, depth: int) -> Expression:
    """Return a random expression of limited depth, with numbers from -1 to 1."""
    if depth == 0 or dice.random() < 0.2:
        return round(dice.uniform(-1, 1), 2)
    return Join(dice.choice(list(OPERATORS)), grow(dice, depth - 1), grow(dice, depth - 1))


def value(expression: Expression) -> float:
    """Return the value of the expression, computed by Python."""
    if isinstance(expression, Join):
        return OPERATORS[expression.sign](value(expression.left), value(expression.right))
    return expression


class Evaluator(nn.Module):
    """Networks for the operators, composed along the tree of an expression."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.number = nn.Linear(1, width)
        self.joins = nn.ModuleDict(
            {
                sign: nn.Sequential(nn.Linear(2 * width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))
                for sign in OPERATORS
            }
        )
        self.read = nn.Linear(width, 1)

    def vector(self, expression: Expression) -> candelabra.Tensor:
        if isinstance(expression, Join):
            sides = candelabra.cat([self.vector(expression.left), self.vector(expression.right)])
            return self.joins[expression.sign](sides)
        return self.number(candelabra.tensor([expression]))

    def forward(self, expression: Expression) -> candelabra.Tensor:
        return self.read(self.vector(expression))[0]


@candelabra.no_grad()
def error(model: Evaluator, expressions: list[Expression]) -> float:
    """Return the root mean square error."""
    squares = [(model(expression).item() - value(expression)) ** 2 for expression in expressions]
    return (sum(squares) / len(squares)) ** 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    candelabra.set_default_device(options.device)
    candelabra.manual_seed(0)
    dice = random.Random(0)
    model = Evaluator()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    exams = {depth: [grow(random.Random(depth * 1000 + i), depth) for i in range(200)] for depth in (2, 3, 4)}
    before = {depth: error(model, exam) for depth, exam in exams.items()}
    for _ in tqdm(range(options.steps), desc="learning", unit="step"):
        batch = [grow(dice, 3) for _ in range(options.batch)]
        loss = sum((model(expression) - value(expression)) ** 2 for expression in batch) / options.batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    for depth, exam in exams.items():
        print(f"error on new expressions of depth {depth}: {before[depth]:.3f} before, {error(model, exam):.3f} after")
    for expression in exams[3][:3]:
        print(f"{expression} = {value(expression):.2f}, the net says {model(expression).item():.2f}")


if __name__ == "__main__":
    main()
