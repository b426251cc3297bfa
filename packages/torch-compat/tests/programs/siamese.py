"""Two twins of one net say whether two images show the same: shared weights, TripletMarginLoss with
distances of one's own, CosineEmbeddingLoss.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
prototypes = torch.randn(5, 1, 8, 8)


def draw(labels):
    return prototypes[labels] + 0.3 * torch.randn(len(labels), 1, 8, 8)


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 16))
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(inplace=True), nn.Linear(32, 1))
        self.conv.apply(self.init)

    @staticmethod
    def init(m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def embed(self, x):
        return F.normalize(self.conv(x), dim=-1)

    def forward(self, one, two):
        return torch.sigmoid(self.head(torch.cat((self.conv(one), self.conv(two)), 1))).squeeze(1)


labels = torch.randint(5, (400, 2))
labels[::2, 1] = labels[::2, 0]
loader = DataLoader(
    TensorDataset(draw(labels[:, 0]), draw(labels[:, 1]), (labels[:, 0] == labels[:, 1]).float()), 40, shuffle=True
)
model = SiameseNetwork()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
losses = []
for _ in range(8):
    for one, two, same in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.binary_cross_entropy(model(one, two), same)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
with torch.no_grad():
    guessed = torch.cat([model(one, two) > 0.5 for one, two, _ in loader])
assert sum(losses[-10:]) < 0.6 * sum(losses[:10]), (losses[:3], losses[-3:])

for name, criterion in (
    ("triplet", nn.TripletMarginLoss(margin=0.5, swap=True)),
    (
        "distance",
        nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), margin=0.5),
    ),
):
    net = SiameseNetwork()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    values = []
    for _ in range(60):
        kind = torch.randint(5, (32,))
        other = (kind + torch.randint(1, 5, (32,))) % 5
        loss = criterion(net.embed(draw(kind)), net.embed(draw(kind)), net.embed(draw(other)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.3 * max(values[0], 0.1), (name, values[0], values[-1])

net = SiameseNetwork()
optimizer = torch.optim.NAdam(net.parameters(), lr=3e-3)
criterion = nn.CosineEmbeddingLoss(margin=0.2)
for _ in range(60):
    kind = torch.randint(5, (32,))
    other = torch.where(torch.rand(32) < 0.5, kind, (kind + 1) % 5)
    loss = criterion(net.conv(draw(kind)), net.conv(draw(other)), torch.where(kind == other, 1, -1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.15, loss
print("learned", losses[-1], values[-1], loss.item(), guessed.float().mean().item())
