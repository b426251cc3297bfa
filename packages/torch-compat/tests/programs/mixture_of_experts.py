"""A mixture of experts: gates by top-k of softmax, tokens gathered for each expert and scattered
back, a loss that balances the load.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w1, self.w2, self.w3 = (
            nn.Linear(width, 2 * width, bias=False),
            nn.Linear(2 * width, width, bias=False),
            nn.Linear(width, 2 * width, bias=False),
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoE(nn.Module):
    def __init__(self, width, experts=4, top_k=2):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([Expert(width) for _ in range(experts)])
        self.top_k = top_k

    def forward(self, x):
        shape = x.shape
        x = x.view(-1, shape[-1])
        probabilities = F.softmax(self.gate(x), dim=-1, dtype=torch.float)
        weights, selected = torch.topk(probabilities, self.top_k, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        final = torch.zeros_like(x)
        mask = F.one_hot(selected, num_classes=len(self.experts)).permute(2, 1, 0)
        for number, expert in enumerate(self.experts):
            place, token = torch.where(mask[number])
            if token.numel() == 0:
                continue
            final.index_add_(0, token, expert(x[None, token].reshape(-1, shape[-1])) * weights[token, place, None])
        load = mask.float().amax(1).mean(1)
        balance = len(self.experts) * (load * probabilities.mean(0)).sum() / self.top_k
        return final.view(shape), balance


class Model(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inputs, self.norm = nn.Linear(6, width), nn.RMSNorm(width)
        self.moe, self.out = SparseMoE(width), nn.Linear(width, 1)

    def forward(self, x):
        h = self.inputs(x)
        routed, balance = self.moe(self.norm(h))
        return self.out(h + routed).squeeze(-1), balance


def batch(n):
    """A function that is another one in each quadrant."""
    x = torch.randn(n, 5, 6)
    kind = 2 * (x[..., 0] > 0).long() + (x[..., 1] > 0).long()
    answers = torch.stack([x[..., 2], x[..., 3] * 2, -x[..., 4], x[..., 5].abs()], -1)
    return x, answers.gather(-1, kind.unsqueeze(-1)).squeeze(-1)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
losses = []
for _ in range(150):
    x, y = batch(64)
    predicted, balance = model(x)
    loss = F.mse_loss(predicted, y)
    optimizer.zero_grad()
    (loss + 0.01 * balance).backward()
    optimizer.step()
    losses.append(loss.item())
assert all(p.grad is not None for p in model.parameters())
assert sum(losses[-10:]) < 0.35 * sum(losses[:10]), (losses[0], losses[-1])
print("learned", losses[0], losses[-1], balance.item())
