"""Learn to balance a pole on a cart by policy gradients (REINFORCE, Williams 1992), with the
batch's mean return as the baseline.

The cart is simulated here, many at once, after Barto, Sutton and Anderson, "Neuronlike adaptive
elements that can solve difficult learning control problems" (1983). Prints how long the pole stands
and draws the learning curve into ``cart_pole.png``.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from tqdm import tqdm

import candelabra
from candelabra import distributions, nn, optim

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
LIMIT_PLACE, LIMIT_ANGLE = 2.4, 12 * math.pi / 180


def move(state: candelabra.Tensor, push: candelabra.Tensor) -> candelabra.Tensor:
    """Return the next state. Columns are position, velocity, angle and angular velocity; the push
    is left (0) or right (1).
    """
    place, speed, angle, turning = state.unbind(-1)
    force = FORCE * (2.0 * push - 1.0)
    inertia = (force + POLE * HALF_LENGTH * turning.square() * angle.sin()) / (CART + POLE)
    falling = (GRAVITY * angle.sin() - angle.cos() * inertia) / (
        HALF_LENGTH * (4 / 3 - POLE * angle.cos().square() / (CART + POLE))
    )
    acceleration = inertia - POLE * HALF_LENGTH * falling * angle.cos() / (CART + POLE)
    return candelabra.stack(
        [
            place + SECONDS * speed,
            speed + SECONDS * acceleration,
            angle + SECONDS * turning,
            turning + SECONDS * falling,
        ],
        -1,
    )


def stands(state: candelabra.Tensor) -> candelabra.Tensor:
    """Return whether the cart is on its track and the pole upright."""
    return (state[:, 0].abs() < LIMIT_PLACE) & (state[:, 2].abs() < LIMIT_ANGLE)


def play(policy: nn.Module, carts: int, moments: int) -> tuple[candelabra.Tensor, candelabra.Tensor]:
    """Balance many poles; return the log probabilities of the actions, and whether the pole stood,
    both of shape (steps, carts).
    """
    state = candelabra.empty(carts, 4).uniform_(-0.05, 0.05)
    alive = candelabra.ones(carts, dtype=candelabra.bool)
    chances, standing = [], []
    for _ in range(moments):
        choice = distributions.Categorical(logits=policy(state))
        push = choice.sample()
        chances.append(choice.log_prob(push) * alive)
        standing.append(alive)
        state = move(state, push)
        alive = alive & stands(state)
        if not alive.any():
            break
    return candelabra.stack(chances), candelabra.stack(standing)


def learn(policy: nn.Module, rounds: int, carts: int, moments: int) -> list[float]:
    """Ascend the gradient of the expected return; return the mean number of steps that poles stood
    in each round.
    """
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    history = []
    progress = tqdm(range(rounds), desc="learning", unit="round")
    for _ in progress:
        chances, standing = play(policy, carts, moments)
        # The return of a step: the number of further steps that the pole stood. Actions of carts
        # above the mean are reinforced.
        returns = standing.float().flip(0).cumsum(0).flip(0)
        count = standing.sum(1, keepdim=True).clamp(min=1)
        mean = (returns * standing).sum(1, keepdim=True) / count
        spread = (((returns - mean) * standing).square().sum(1, keepdim=True) / count).sqrt() + 1e-3
        loss = -(((returns - mean) / spread * standing).detach() * chances).sum() / carts
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(standing.sum(0).float().mean().item())
        progress.set_postfix(moments=f"{history[-1]:.0f}", refresh=False)
    return history


def draw(path: Path, history: list[float], moments: int) -> None:
    """Plot the mean length of episodes, round by round."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(history, color="#d9480f")
    axes.axhline(moments, color="#c9c9c9", linestyle="--")
    axes.set(xlabel="round", ylabel="moments that the pole stood", title="Balancing a pole by policy gradients")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--carts", type=int, default=64)
    parser.add_argument("--moments", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=Path("output"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    candelabra.set_default_device(options.device)
    candelabra.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    history = learn(policy, options.rounds, options.carts, options.moments)
    print(f"the pole stood {history[0]:.0f} moments at first, {max(history[-5:]):.0f} of {options.moments} at last")
    draw(options.output / "cart_pole.png", history, options.moments)
    print(f"curve: {options.output / 'cart_pole.png'}")


if __name__ == "__main__":
    main()
