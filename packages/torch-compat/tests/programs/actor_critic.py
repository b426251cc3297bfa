"""An actor and a critic walk to the end of a corridor."""

from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(6, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


torch.manual_seed(3)
model = Policy()
optimizer = optim.Adam(model.parameters(), lr=2e-2)
eps = torch.finfo(torch.float32).eps
lengths = []
for _episode in range(60):
    place = moment = 0
    while moment < 60:
        moment += 1
        state = F.one_hot(torch.tensor(place), 6).float()
        probs, value = model(state)
        m = Categorical(probs)
        action = m.sample()
        model.saved_actions.append(SavedAction(m.log_prob(action), value))
        place = min(max(place + (1 if action.item() else -1), 0), 5)
        model.rewards.append(1.0 if place == 5 else -0.1)
        if place == 5:
            break
    lengths.append(moment)
    R, returns = 0, []
    for r in model.rewards[::-1]:
        R = r + 0.95 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps) if len(returns) > 1 else returns
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
assert sum(lengths[-10:]) / 10 < 9, lengths
print("learned", lengths[0], lengths[-1])
