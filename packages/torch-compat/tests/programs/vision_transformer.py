"""A small vision transformer: patches by a strided convolution, a class token,
nn.TransformerEncoder, warm-up and cosine schedule.
"""

import math

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

torch.manual_seed(0)


class ViT(nn.Module):
    def __init__(self, size=8, patch=4, width=32, depth=2, heads=4, classes=4):
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, depth, norm=nn.LayerNorm(width, eps=1e-6), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.encoder(x)[:, 0])


def batch(n):
    y = torch.randint(4, (n,))
    x = 0.2 * torch.randn(n, 1, 8, 8)
    for i in range(4):
        row, column = divmod(i, 2)
        x[y == i, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1.0
    return x, y


model = ViT()
decay = [p for n, p in model.named_parameters() if p.ndim >= 2 and "token" not in n]
rest = [p for n, p in model.named_parameters() if p.ndim < 2 or "token" in n]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=5e-3)
scheduler = SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=10), CosineAnnealingLR(optimizer, 110)], [10])
criterion = nn.CrossEntropyLoss()
for _ in range(120):
    x, y = batch(32)
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
model.eval()
x, y = batch(200)
with torch.inference_mode():
    right = (model(x).argmax(-1) == y).float().mean().item()
assert right > 0.8, right
assert math.isclose(scheduler.get_last_lr()[0], 0.0, abs_tol=1e-6), scheduler.get_last_lr()
print("learned", loss.item(), right)
