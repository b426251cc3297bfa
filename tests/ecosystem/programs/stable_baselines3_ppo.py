"""stable-baselines3: PPO and DQN learn CartPole, are stored, loaded and act."""

from __future__ import annotations

import io
from typing import Any

import gymnasium
import numpy
from harness import run
from stable_baselines3 import DQN, PPO


def main() -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, method, options in (
        ("ppo", PPO, {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
        ("dqn", DQN, {"learning_starts": 50, "batch_size": 16, "buffer_size": 1000}),
    ):
        model = method("MlpPolicy", gymnasium.make("CartPole-v1"), seed=0, device="cpu", **options)  # type: ignore[operator]
        model.learn(256)
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        loaded = method.load(file, device="cpu")  # type: ignore[attr-defined]
        states = numpy.linspace(-1, 1, 12, dtype=numpy.float32).reshape(3, 4)
        results[name] = {
            "actions": loaded.predict(states, deterministic=True)[0],
            "norm": sum(p.double().square().sum().item() for p in loaded.policy.parameters()),
        }
    return results


if __name__ == "__main__":
    run(main)
