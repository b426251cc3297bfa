"""Run ordinary PyTorch programs that train networks, with ``import candelabra as torch``.

The expected numbers are those of PyTorch 2.13 for the same programs.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import candelabra as torch

sys.path.insert(0, str(Path(__file__).parent))

from program_data import fixed_init


def test_attention_block():
    """Train a small transformer of Linear layers with tied weights, two parameter groups and
    gradient clipping.
    """
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads = heads
            self.qkv = nn.Linear(d, 3 * d, bias=False)
            self.out = nn.Linear(d, d)
            self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.0), nn.Linear(2 * d, d))
            self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16), persistent=False)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
            q, k, v = [t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v)]
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
            assert torch.allclose(y, F.scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-5)
            y = y.transpose(1, 2).contiguous().view(B, T, C)
            x = x + self.out(y)
            return x + self.ff(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self, V=11, d=16, T=8):
            super().__init__()
            self.tok, self.pos = nn.Embedding(V, d), nn.Parameter(torch.zeros(1, T, d))
            self.blocks = nn.ModuleList([Block(d, 2) for _ in range(2)])
            self.head = nn.Linear(d, V, bias=False)
            self.head.weight = self.tok.weight

        def forward(self, idx, targets=None):
            x = self.tok(idx) + self.pos[:, : idx.size(1)]
            for b in self.blocks:
                x = b(x)
            logits = self.head(x)
            loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
            return logits, loss

    m = GPT()
    fixed_init(m)
    decay = [p for p in m.parameters() if p.dim() >= 2]
    nodecay = [p for p in m.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95)
    )
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=40)
    r = np.random.RandomState(0)
    start = torch.from_numpy(r.randint(0, 11, (16, 1)))
    seq = (start + torch.arange(9)) % 11
    L = []
    for _ in range(40):
        _, loss = m(seq[:, :-1], seq[:, 1:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        sched.step()
        L.append(loss.item())
    assert L[-1] < 0.5 * L[0], L
    assert [L[0], L[-1]] == pytest.approx([4.245534, 0.210765], rel=5e-3, abs=1e-5)


def test_groupnorm_net():
    """Train a channels-last residual net with group normalization."""
    nn, F = torch.nn, torch.nn.functional

    class Res(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c1, self.n1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.GroupNorm(2, c)
            self.c2, self.n2 = nn.Conv2d(c, c, 3, padding=1, groups=c), nn.GroupNorm(1, c)

        def forward(self, x):
            h = F.silu(self.n1(self.c1(x)))
            return F.relu(x + self.n2(self.c2(h)))

    net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Res(8), nn.AvgPool2d(2), Res(8), nn.Conv2d(8, 4, 1))
    fixed_init(net)
    net = net.to(memory_format=torch.channels_last)
    r = np.random.RandomState(0)
    x = torch.tensor(r.randn(4, 3, 16, 16), dtype=torch.float32).contiguous(memory_format=torch.channels_last)
    t = torch.from_numpy(r.randint(0, 4, (4, 4, 4)))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)
    L = []
    for _ in range(10):
        loss = F.cross_entropy(net(x), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        L.append(loss.item())
    assert [L[0], L[-1]] == pytest.approx([1.7216, 1.320174], rel=1e-3, abs=1e-5)
    assert net(x).is_contiguous(memory_format=torch.channels_last) and opt.param_groups[0]["lr"] == pytest.approx(
        0, abs=1e-9
    )


def test_rnn_by_hand():
    """Train hand-written recurrent cells to compute parity."""
    nn = torch.nn

    class RNN(nn.Module):
        def __init__(self, i, h, o):
            super().__init__()
            self.h = h
            self.i2h = nn.Linear(i + h, h)
            self.h2o = nn.Linear(h, o)

        def forward(self, x, hidden):
            c = torch.cat((x, hidden), 1)
            hidden = torch.tanh(self.i2h(c))
            return self.h2o(hidden), hidden

        def initHidden(self, b):
            return torch.zeros(b, self.h)

    class GRUCell(nn.Module):
        def __init__(self, i, h):
            super().__init__()
            self.w = nn.Parameter(torch.empty(3 * h, i))
            self.u = nn.Parameter(torch.empty(3 * h, h))

        def forward(self, x, h):
            gi, gh = (x @ self.w.t()).chunk(3, 1), (h @ self.u.t()).chunk(3, 1)
            r, z = torch.sigmoid(gi[0] + gh[0]), torch.sigmoid(gi[1] + gh[1])
            n = torch.tanh(gi[2] + r * gh[2])
            return (1 - z) * n + z * h

    r = np.random.RandomState(0)
    bits = torch.from_numpy(r.randint(0, 2, (32, 6)))
    target = bits.sum(1) % 2
    m, cell = RNN(2, 16, 2), GRUCell(2, 16)
    fixed_init(m)
    fixed_init(cell)
    opt = torch.optim.RMSprop([*m.parameters(), *cell.parameters()], lr=0.01, momentum=0.5, centered=True)
    L = []
    for _ in range(30):
        h = m.initHidden(32)
        g = h.clone()
        for t in range(bits.size(1)):
            x = torch.nn.functional.one_hot(bits[:, t], 2).float()
            out, h = m(x, h)
            g = cell(x, g)
        loss = torch.nn.functional.cross_entropy(out + m.h2o(g), target)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(m.parameters(), 0.5)
        opt.step()
        L.append(loss.item())
    assert [L[0], L[-1]] == pytest.approx([0.887206, 0.0442013], rel=2e-2, abs=1e-5)


def test_policy_gradient():
    """Train REINFORCE on a bandit with four states."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(1)
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    opt = torch.optim.Adam(policy.parameters(), lr=0.02)
    states = torch.eye(4)
    best = torch.tensor([2, 0, 1, 2])
    baseline = 0.0
    for _ep in range(200):
        s = torch.randint(0, 4, (16,))
        logits = policy(states[s])
        logp = F.log_softmax(logits, -1)
        a = torch.multinomial(logp.exp().detach(), 1).squeeze(-1)
        reward = (a == best[s]).float()
        chosen = logp[torch.arange(16), a]
        assert torch.equal(chosen, logp.gather(1, a.unsqueeze(1)).squeeze(1))
        entropy = -(logp.exp() * logp).sum(-1).mean()
        loss = -(chosen * (reward - baseline)).mean() - 0.01 * entropy
        opt.zero_grad()
        loss.backward()
        opt.step()
        baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    assert baseline > 0.8, baseline
    assert (policy(states).argmax(-1) == best).all()


def test_float64_training():
    """Train in float64 with ReduceLROnPlateau."""
    torch.set_default_dtype(torch.float64)
    try:
        nn = torch.nn
        m = nn.Sequential(nn.Linear(2, 8), nn.Softplus(), nn.Linear(8, 1))
        assert m[0].weight.dtype == torch.float64
        r = np.random.RandomState(5)
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(torch.from_numpy(r.randn(*p.shape)))
        X = torch.from_numpy(r.randn(30, 2))
        y = X.prod(1, keepdim=True)
        opt = torch.optim.SGD(m.parameters(), lr=1e-2, momentum=0.9)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3, factor=0.5)
        L = []
        for _ in range(60):
            loss = nn.functional.smooth_l1_loss(m(X), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            plateau.step(loss)
            L.append(loss.item())
        assert [L[0], L[-1], opt.param_groups[0]["lr"]] == pytest.approx(
            [2.5431374785, 0.3081345799, 0.0003125], rel=1e-8, abs=1e-5
        )
    finally:
        torch.set_default_dtype(torch.float32)


def test_vae():
    """Train a variational autoencoder."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.mu, self.lv = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 2)
            self.d1, self.d2 = nn.Linear(2, 16), nn.Linear(16, 8)

        def reparameterize(self, mu, logvar):
            std = torch.exp(0.5 * logvar)
            eps = torch.randn_like(std)
            return mu + eps * std

        def forward(self, x):
            h = F.relu(self.e(x))
            mu, lv = self.mu(h), self.lv(h)
            z = self.reparameterize(mu, lv)
            return torch.sigmoid(self.d2(F.relu(self.d1(z)))), mu, lv

    X = (torch.rand(64, 1) > 0.5).float().expand(-1, 8) * 0.8 + 0.1
    m = VAE()
    opt = torch.optim.Adam(m.parameters(), lr=1e-2)
    first = None
    for _ in range(100):
        rec, mu, lv = m(X)
        loss = F.binary_cross_entropy(rec, X, reduction="sum") - 0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        opt.zero_grad()
        loss.backward()
        opt.step()
        first = first or loss.item()
    assert loss.item() < first * 0.8
