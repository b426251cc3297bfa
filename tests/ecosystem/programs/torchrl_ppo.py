"""torchrl: frames are collected from CartPole, and a policy learns by the clipped PPO loss."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from harness import run
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import GymEnv
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

warnings.filterwarnings("ignore")


def main() -> dict[str, Any]:
    env = GymEnv("CartPole-v1", categorical_action_encoding=True)
    env.set_seed(0)
    logits = TensorDictModule(
        MLP(in_features=4, out_features=2, num_cells=[16]), in_keys=["observation"], out_keys=["logits"]
    )
    actor = ProbabilisticActor(
        logits, in_keys=["logits"], distribution_class=torch.distributions.Categorical, return_log_prob=True
    )
    critic = ValueOperator(MLP(in_features=4, out_features=1, num_cells=[16]), in_keys=["observation"])
    loss_of, advantage = ClipPPOLoss(actor, critic), GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-3)
    collector = Collector(env, actor, frames_per_batch=64, total_frames=128)
    buffer = ReplayBuffer(storage=LazyTensorStorage(64), batch_size=32)
    losses = []
    for frames in collector:
        with torch.no_grad():
            advantage(frames)
        buffer.extend(frames.reshape(-1))
        for _ in range(2):
            parts = loss_of(buffer.sample())
            loss = parts["loss_objective"] + parts["loss_critic"] + parts["loss_entropy"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    collector.shutdown()
    return {"losses": losses}


if __name__ == "__main__":
    run(main)
