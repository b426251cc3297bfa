"""REINFORCE with a Gaussian policy that learns to point, and with a Bernoulli one; entropy,
independent dimensions, old log-probabilities (PPO).
"""

from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Bernoulli, Independent, Normal, TransformedDistribution, kl_divergence
from torch.distributions.transforms import TanhTransform

torch.manual_seed(543)
eps = np.finfo(np.float32).eps.item()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        self.log_std = nn.Parameter(-0.5 * torch.ones(2))

    def forward(self, state):
        return Independent(Normal(self.body(state), self.log_std.exp()), 1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=2e-2)
recent = deque(maxlen=20)
first = None
for _ in range(150):
    goal = 0.5 * torch.randn(64, 2)
    distribution = policy(goal)
    action = distribution.sample()
    reward = -(action - goal).square().sum(-1)
    recent.append(reward.mean().item())
    first = recent[0] if first is None else first
    returns = (reward - reward.mean()) / (reward.std() + eps)
    loss = (-distribution.log_prob(action) * returns).mean() - 1e-3 * distribution.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert np.mean(recent) > 0.5 * first, (first, np.mean(recent))

# A few steps of PPO on one batch of actions, watched by the divergence from where they began.
goal = 0.5 * torch.randn(256, 2)
with torch.no_grad():
    old = policy(goal)
    action = old.sample()
    old_log_prob = old.log_prob(action)
    advantage = -(action - goal).square().sum(-1)
    advantage = (advantage - advantage.mean()) / advantage.std().clamp_min(eps)
for _ in range(3):
    new = policy(goal)
    ratio = (new.log_prob(action) - old_log_prob).exp()
    loss = -torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
divergence = kl_divergence(old, policy(goal)).mean().item()
assert 0 < divergence < 20, divergence

squashed = TransformedDistribution(Normal(torch.zeros(3), torch.ones(3)), [TanhTransform(cache_size=1)])
sample = squashed.rsample()
assert sample.abs().max() < 1 and torch.isfinite(squashed.log_prob(sample)).all()

gate = nn.Parameter(torch.zeros(4))
optimizer = optim.RMSprop([gate], lr=0.1)
wanted = torch.tensor([1.0, 0.0, 1.0, 1.0])
for _ in range(120):
    m = Bernoulli(logits=gate)
    bits = m.sample((32,))
    reward = (bits == wanted).float().sum(1)
    loss = -(m.log_prob(bits).sum(1) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert ((gate > 0).float() == wanted).all(), gate
print("learned", first, np.mean(recent), divergence)
