"""Run ordinary PyTorch programs with ``import candelabra as torch``.

The expected numbers are those of PyTorch 2.13 for the same programs.
"""

from __future__ import annotations

import io
import math
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest

import candelabra as torch

sys.path.insert(0, str(Path(__file__).parent))

from program_data import blobs, fixed_init


def test_linear_regression_by_hand():
    """Fit a linear regression with autograd alone."""
    r = np.random.RandomState(0)
    X = torch.from_numpy(r.randn(100, 3).astype(np.float32))
    true_w = torch.tensor([1.5, -2.0, 0.5])
    y = X @ true_w + 0.3
    w = torch.zeros(3, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    lr = 0.1
    losses = []
    for _epoch in range(100):
        pred = X.mv(w) + b
        loss = ((pred - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad
            b -= lr * b.grad
            w.grad.zero_()
            b.grad.zero_()
        losses.append(loss.item())
    assert losses[-1] < 1e-3, losses[-1]
    assert torch.allclose(w, true_w, atol=1e-3) and b.item() == pytest.approx(0.3, abs=1e-3)
    assert f"{losses[0]:.3f}" == "7.156" and f"{loss * 1e6:.0f}" == "0"


def test_mlp_classifier():
    """Train a two-layer classifier in batches."""
    nn, F, optim = torch.nn, torch.nn.functional, torch.optim
    X, y = blobs(200, 4, seed=3)

    class Net(nn.Module):
        def __init__(self, din, dh, dout):
            super().__init__()
            self.fc1 = nn.Linear(din, dh)
            self.fc2 = nn.Linear(dh, dout)

        def forward(self, x):
            x = F.relu(self.fc1(x))
            return self.fc2(x)

    model = Net(2, 16, 4)
    fixed_init(model)
    criterion = nn.CrossEntropyLoss()
    opt = optim.Adam(model.parameters(), lr=0.01)
    history = []
    for _epoch in range(30):
        model.train()
        running = 0.0
        for i in range(0, len(X), 50):
            xb, yb = X[i : i + 50], y[i : i + 50]
            opt.zero_grad()
            out = model(xb)
            loss = criterion(out, yb)
            loss.backward()
            opt.step()
            running += loss.item() * xb.size(0)
        history.append(running / len(X))
    model.eval()
    with torch.no_grad():
        _, pred = torch.max(model(X), 1)
        correct = (pred == y).sum().item()
    assert correct / len(y) > 0.9
    assert [history[0], history[-1]] == pytest.approx([1.18498, 0.19755], rel=1e-3, abs=1e-5)
    assert correct == 183


def test_cnn():
    """Train a convolutional net with batch normalization."""
    nn, F = torch.nn, torch.nn.functional
    r = np.random.RandomState(0)
    y = torch.from_numpy(r.randint(0, 2, 64))
    X = torch.from_numpy(r.randn(64, 1, 8, 8).astype("float32") * 0.3)
    X[y == 1, :, 2:5, 2:5] += 1.0
    model = nn.Sequential(
        OrderedDict(
            [
                ("conv1", nn.Conv2d(1, 4, kernel_size=3, padding=1)),
                ("bn", nn.BatchNorm2d(4)),
                ("act", nn.ReLU(inplace=True)),
                ("pool", nn.MaxPool2d(2)),
                ("conv2", nn.Conv2d(4, 8, 3, stride=1, padding="same")),
                ("act2", nn.LeakyReLU(0.1)),
                ("gap", nn.AdaptiveAvgPool2d((1, 1))),
                ("flat", nn.Flatten()),
                ("fc", nn.Linear(8, 2)),
            ]
        )
    )
    fixed_init(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    losses = []
    for _epoch in range(15):
        out = model(X)
        loss = F.nll_loss(F.log_softmax(out, dim=1), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(float(loss))
    model.eval()
    acc = (model(X).argmax(dim=1) == y).float().mean()
    assert acc > 0.9, acc
    assert [losses[0], losses[-1]] == pytest.approx([0.69614, 0.54501], rel=1e-3, abs=1e-5)
    assert model.bn.num_batches_tracked == 15


def test_char_ngram():
    """Train a character-level embedding model and generate text."""
    nn, F = torch.nn, torch.nn.functional
    text = "the quick brown fox jumps over the lazy dog " * 4
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
    ctx = 3
    X = torch.stack([data[i : i + ctx] for i in range(len(data) - ctx)])
    Y = data[ctx:]

    class LM(nn.Module):
        def __init__(self, V, E=8, H=32):
            super().__init__()
            self.emb = nn.Embedding(V, E)
            self.l1 = nn.Linear(E * ctx, H)
            self.l2 = nn.Linear(H, V)

        def forward(self, x):
            h = torch.tanh(self.l1(self.emb(x).view(x.shape[0], -1)))
            return self.l2(h)

    m = LM(len(chars))
    fixed_init(m)
    opt = torch.optim.Adam(m.parameters(), lr=0.02)
    for _step in range(80):
        loss = F.cross_entropy(m(X), Y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    out = list(text[:ctx])
    with torch.no_grad():
        for _ in range(20):
            x = torch.tensor([[stoi[c] for c in out[-ctx:]]])
            probs = F.softmax(m(x), dim=-1)
            out.append(chars[probs.argmax(-1).item()])
    assert loss < 0.2
    g = torch.Generator().manual_seed(3)
    s = torch.multinomial(probs[0], num_samples=4, replacement=True, generator=g)
    assert s.shape == (4,)
    assert "".join(out) == "the lazy dog the lazy d"
    assert loss.item() == pytest.approx(0.0337, rel=0.01, abs=1e-5)


def test_custom_function():
    """Train with custom autograd functions."""

    class MyReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[input < 0] = 0
            return grad_input

    class STE(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return torch.round(x * scale) / scale

        @staticmethod
        def backward(ctx, g):
            return g, None

    r = np.random.RandomState(0)
    x = torch.tensor(r.randn(32, 4), dtype=torch.float)
    y = torch.tensor(r.randn(32, 2), dtype=torch.float)
    w1 = torch.tensor(r.randn(4, 8), dtype=torch.float, requires_grad=True)
    w2 = torch.tensor(r.randn(8, 2), dtype=torch.float, requires_grad=True)
    L = []
    for _t in range(50):
        relu = MyReLU.apply
        y_pred = relu(x.mm(STE.apply(w1, 16))).mm(w2)
        loss = (y_pred - y).pow(2).sum()
        L.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for w in (w1, w2):
                w -= 1e-3 * w.grad
                w.grad = None
    t64 = torch.tensor(r.randn(3, 3), dtype=torch.float64, requires_grad=True)
    assert [L[0], L[-1]] == pytest.approx([459.1734, 45.0102], rel=1e-3, abs=1e-5)
    assert torch.autograd.gradcheck(MyReLU.apply, (t64,))


def test_module_buffers_hooks():
    """Use a module with buffers, module and tensor hooks, and a state dict."""
    nn = torch.nn

    class EMA(nn.Module):
        def __init__(self, n, momentum=0.1):
            super().__init__()
            self.register_buffer("mean", torch.zeros(n))
            self.register_buffer("steps", torch.tensor(0, dtype=torch.long))
            self.momentum = momentum
            self.scale = nn.Parameter(torch.ones(n))

        def forward(self, x):
            if self.training:
                with torch.no_grad():
                    self.mean.mul_(1 - self.momentum).add_(x.mean(0), alpha=self.momentum)
                    self.steps += 1
            return (x - self.mean) * self.scale

        def extra_repr(self):
            return f"momentum={self.momentum}"

    acts, grads = {}, defaultdict(list)
    m = nn.Sequential(EMA(3), nn.Linear(3, 2))
    fixed_init(m)
    for name, mod in m.named_children():
        mod.register_forward_hook(lambda mod, i, o, name=name: acts.__setitem__(name, o.detach().clone()))
        mod.register_full_backward_hook(lambda mod, gi, go, name=name: grads[name].append(go[0].norm().item()))
    m[1].weight.register_hook(lambda g: g * 0.5)
    x = torch.arange(12, dtype=torch.float32).reshape(4, 3)
    for _ in range(3):
        m(x).pow(2).mean().backward()
    sd = m.state_dict()
    m2 = nn.Sequential(EMA(3), nn.Linear(3, 2))
    m2.load_state_dict(sd)
    m.eval(), m2.eval()
    same = torch.allclose(m(x), m2(x))
    assert same and list(sd) == ["0.scale", "0.mean", "0.steps", "1.weight", "1.bias"] and m[0].steps == 3
    assert acts["1"].shape == (4, 2) and len(grads["0"]) == len(grads["1"]) == 3
    assert "(0): EMA(momentum=0.1)" in repr(m)


def test_gradient_penalty():
    """Train a critic with a gradient penalty (double backward) and clipped weights."""
    nn = torch.nn
    D = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    fixed_init(D)
    opt = torch.optim.RMSprop(D.parameters(), lr=5e-3)
    r = np.random.RandomState(0)
    real = torch.tensor(r.randn(64, 2) + 2, dtype=torch.float32)
    fake = torch.tensor(r.randn(64, 2) - 2, dtype=torch.float32)
    out = []
    for _i in range(25):
        eps = torch.tensor(r.rand(64, 1), dtype=torch.float32)
        inter = (eps * real + (1 - eps) * fake).requires_grad_(True)
        d = D(inter)
        g = torch.autograd.grad(
            outputs=d, inputs=inter, grad_outputs=torch.ones_like(d), create_graph=True, retain_graph=True
        )[0]
        gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss = D(fake).mean() - D(real).mean() + 10 * gp
        opt.zero_grad()
        loss.backward()
        opt.step()
        for p in D.parameters():
            p.data.clamp_(-1, 1)
        out.append((loss.item(), gp.item()))
    assert [*out[0], *out[-1]] == pytest.approx([8.434488, 0.799897, -4.854125, 0.0826108], rel=2e-3, abs=1e-5)


def test_checkpoint_resume():
    """Resume from a checkpoint of model, optimizer and schedule as if there was no interruption."""
    nn, optim = torch.nn, torch.optim
    X, y = blobs(60, 3)

    def make():
        m = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
        fixed_init(m)
        o = optim.Adam(m.parameters(), lr=0.02)
        return m, o, optim.lr_scheduler.ExponentialLR(o, gamma=0.95)

    def train(m, o, s, n):
        for _ in range(n):
            o.zero_grad()
            loss = nn.functional.cross_entropy(m(X), y)
            loss.backward()
            o.step()
            s.step()
        return loss

    m, o, s = make()
    train(m, o, s, 5)
    f = io.BytesIO()
    loss = nn.functional.cross_entropy(m(X), y)
    torch.save(
        {
            "epoch": 5,
            "model_state_dict": m.state_dict(),
            "optimizer_state_dict": o.state_dict(),
            "scheduler": s.state_dict(),
            "loss": loss,
        },
        f,
    )
    a = train(m, o, s, 4)
    f.seek(0)
    ck = torch.load(f, weights_only=False)
    m2, o2, s2 = make()
    m2.load_state_dict(ck["model_state_dict"])
    o2.load_state_dict(ck["optimizer_state_dict"])
    s2.load_state_dict(ck["scheduler"])
    b = train(m2, o2, s2, 4)
    assert a.item() == b.item()
    assert [ck["loss"].item(), a.item()] == pytest.approx([0.7187, 0.5858], rel=1e-3, abs=1e-5)
    assert o.param_groups[0]["lr"] == o2.param_groups[0]["lr"] == pytest.approx(0.02 * 0.95**9)


def test_mixture_density():
    """Train a mixture density network."""
    nn = torch.nn
    r = np.random.RandomState(0)
    y = torch.tensor(r.rand(100, 1) * 2 - 1, dtype=torch.float32)
    x = y + 0.3 * torch.sin(2 * math.pi * y)

    class MDN(nn.Module):
        def __init__(self, h=16, k=3):
            super().__init__()
            self.h = nn.Linear(1, h)
            self.pi, self.mu, self.s = nn.Linear(h, k), nn.Linear(h, k), nn.Linear(h, k)

        def forward(self, x):
            z = torch.tanh(self.h(x))
            return torch.log_softmax(self.pi(z), -1), self.mu(z), torch.nn.functional.softplus(self.s(z)) + 1e-3

    m = MDN()
    fixed_init(m)
    opt = torch.optim.Adam(m.parameters(), lr=0.01)
    L = []
    for _ in range(60):
        logpi, mu, s = m(x)
        logp = -0.5 * ((y - mu) / s) ** 2 - s.log() - 0.5 * math.log(2 * math.pi)
        loss = -torch.logsumexp(logpi + logp, dim=1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        L.append(loss.item())
    assert [L[0], L[-1]] == pytest.approx([0.995032, -0.207384], rel=1e-3, abs=1e-5)


def test_kmeans():
    """Run Lloyd's algorithm with cdist, masks and index_add_."""
    X, _y = blobs(150, 3, seed=7)
    C = X[[0, 50, 100]].clone()
    for _ in range(20):
        d = torch.cdist(X, C)
        a = d.argmin(dim=1)
        new = torch.stack([X[a == k].mean(0) if (a == k).any() else C[k] for k in range(3)])
        sums = torch.zeros_like(C).index_add_(0, a, X)
        cnt = torch.bincount(a, minlength=3).clamp(min=1).unsqueeze(1)
        assert torch.allclose(sums / cnt, new, atol=1e-4)
        if torch.equal(new, C):
            break
        C = new
    onehot = torch.nn.functional.one_hot(a, 3).float()
    assert [(a == k).sum().item() for k in range(3)] == onehot.sum(0).tolist()
    assert torch.allclose(torch.stack([X[a == k].mean(0) for k in range(3)]), C, atol=1e-5)


def test_newton():
    """Run Newton's method with second derivatives from autograd."""
    x = torch.tensor([2.0, 1.0], dtype=torch.double, requires_grad=True)

    def rosen(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    path = []
    for _ in range(10):
        f = rosen(x)
        (g,) = torch.autograd.grad(f, x, create_graph=True)
        H = torch.stack([torch.autograd.grad(gi, x, retain_graph=True)[0] for gi in g])
        det = H[0, 0] * H[1, 1] - H[0, 1] * H[1, 0]
        inv = torch.stack([torch.stack([H[1, 1], -H[0, 1]]), torch.stack([-H[1, 0], H[0, 0]])]) / det
        x = (x - inv @ g).detach().requires_grad_()
        path.append(f.item())
    H2 = torch.autograd.functional.hessian(rosen, x.detach())
    assert abs(x[0].item() - 1) < 1e-6
    assert torch.allclose(x, torch.ones(2, dtype=torch.double)) and path[0] == 901
    assert np.allclose(H2.numpy(), [[802, -400], [-400, 200]])
