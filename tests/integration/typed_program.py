"""A program as users write it, for the type checkers: `test_typing.py` checks and runs it."""

from __future__ import annotations

import sys

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F
from candelabra.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)
        self.scale = nn.Parameter(candelabra.ones(width))
        self.register_buffer("mean", candelabra.zeros(width))

    def forward(self, x: candelabra.Tensor) -> candelabra.Tensor:
        y: candelabra.Tensor = self.drop(self.second(F.gelu(self.first(self.norm(x)))))
        mean: candelabra.Tensor = self.mean
        return x + self.scale * y - mean


class Classifier(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Residual(width) for _ in range(2)])
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.head = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, classes))

    def forward(self, x: candelabra.Tensor) -> candelabra.Tensor:
        for block in self.blocks:
            x = block(x)
        out: candelabra.Tensor = self.head(x)
        return out


class Squares(Dataset[tuple[candelabra.Tensor, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[candelabra.Tensor, int]:
        return candelabra.tensor([float(index)]), index * index


def train(
    model: nn.Module, loader: DataLoader[tuple[candelabra.Tensor, candelabra.Tensor]], epochs: int = 2
) -> list[float]:
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses: list[float] = []
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    return losses


def evaluate(model: nn.Module, x: candelabra.Tensor, y: candelabra.Tensor) -> float:
    model.eval()
    with candelabra.no_grad():
        predicted = model(x).argmax(dim=1)
    return float((predicted == y).float().mean())


def main(path: str) -> None:
    candelabra.manual_seed(0)
    device = candelabra.device("cuda" if candelabra.cuda.is_available() else "cpu")
    x = candelabra.randn(64, 16, device=device)
    y = candelabra.randint(0, 3, (64,))
    first, second = random_split(TensorDataset(x, y), [48, 16])
    loader = DataLoader(first, batch_size=8, shuffle=True, num_workers=0)
    model = Classifier(16, 3).to(device)
    print(train(model, loader), evaluate(model, x, y), len(second))
    candelabra.save(model.state_dict(), path)
    model.load_state_dict(candelabra.load(path))
    grad = candelabra.autograd.grad((x.requires_grad_() ** 2).sum(), x)[0]
    print(grad.shape[0] + grad.size(0), grad.dtype, x[:, 0].tolist(), x.detach().numpy().mean())
    values, indices = x.max(dim=1)
    top = x.topk(3)
    print(values.sum(), indices.sum(), top.values, x.sort().indices)
    per_sample = candelabra.func.vmap(candelabra.func.grad(lambda w, v: (w * v).sum()), in_dims=(None, 0))(x[0], x)
    normal = candelabra.distributions.Normal(candelabra.zeros(2), candelabra.ones(2))
    print(per_sample.shape, normal.sample((3,)).mean(), normal.log_prob(candelabra.zeros(2)))
    compiled = candelabra.compile(model)
    print(compiled(x), candelabra.cat([x, x], dim=0).view(2, -1).permute(1, 0)[..., None].shape)
    print(
        candelabra.linalg.norm(x),
        candelabra.fft.rfft(x).abs().pow(2).sum(dim=-1, keepdim=True),
        candelabra.einsum("ij,kj->ik", x, x),
    )


if __name__ == "__main__":
    main(sys.argv[1])
