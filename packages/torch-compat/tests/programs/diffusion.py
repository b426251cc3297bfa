"""A denoising diffusion model of points on two rings, with an exponential moving average of the
weights.
"""

import copy
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
T = 40


def rings(n):
    angle = 2 * math.pi * torch.rand(n)
    radius = torch.where(torch.rand(n) < 0.5, 0.5, 1.5)
    return radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1) + 0.03 * torch.randn(n, 2)


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer(
            "frequencies", torch.exp(-math.log(1e4) * torch.arange(width // 2) / (width // 2)), persistent=False
        )

    def forward(self, t):
        angles = t.float()[:, None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Sequential(TimeEmbedding(width), nn.Linear(width, width), nn.SiLU())
        self.first = nn.Linear(2, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.Mish()) for _ in range(3)
        )
        self.last = nn.Linear(width, 2)
        nn.init.zeros_(self.last.weight)

    def forward(self, x, t):
        h = self.first(x) + self.time(t)
        for block in self.blocks:
            h = h + block(h)
        return self.last(h)


betas = torch.linspace(1e-3, 0.2, T)
alphas = 1 - betas
alpha_bars = torch.cumprod(alphas, 0)
model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=160)
losses = []
for _epoch in range(20):
    for (x,) in DataLoader(TensorDataset(rings(2048)), batch_size=256, shuffle=True):
        t = torch.randint(0, T, (len(x),))
        noise = torch.randn_like(x)
        scale = alpha_bars[t].unsqueeze(-1)
        loss = (model(scale.sqrt() * x + (1 - scale).sqrt() * noise, t) - noise).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        with torch.no_grad():
            for slow, fast in zip(ema.parameters(), model.parameters()):
                slow.lerp_(fast, 0.05)
        losses.append(loss.item())


@torch.no_grad()
def sample(n):
    x = torch.randn(n, 2)
    for t in reversed(range(T)):
        predicted = ema(x, torch.full((n,), t))
        x = (x - betas[t] / (1 - alpha_bars[t]).sqrt() * predicted) / alphas[t].sqrt()
        if t > 0:
            x += betas[t].sqrt() * torch.randn_like(x)
    return x


def distance(points):
    radius = points.norm(dim=1)
    return torch.minimum((radius - 0.5).abs(), (radius - 1.5).abs()).mean().item()


made, noise = distance(sample(500)), distance(torch.randn(500, 2))
assert made < 0.8 * noise, (made, noise)
assert sum(losses[-20:]) < sum(losses[:20])
print("learned", losses[0], losses[-1], made, noise)
