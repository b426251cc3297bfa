"""Super-resolution: convolutions and a pixel shuffle, PSNR, orthogonal initialization with gains,
interpolation as the baseline.
"""

from math import log10

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import init

torch.manual_seed(123)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))


def images(n):
    axis = torch.linspace(0, 6.28, 24)
    phase, slant = 6.28 * torch.rand(2, n, 1, 1, 1).unbind(0)[0], 1 + 3 * torch.rand(n, 1, 1, 1)
    fine = 0.5 + 0.5 * torch.sign(torch.sin(slant * axis.view(1, 1, -1, 1) + slant * axis.view(1, 1, 1, -1) + phase))
    return F.avg_pool2d(fine, 2), fine


model = Net(2)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()
for _ in range(150):
    coarse, fine = images(8)
    optimizer.zero_grad()
    loss = criterion(model(coarse), fine)
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    coarse, fine = images(16)
    psnr = 10 * log10(1 / criterion(model(coarse), fine).item())
    plain = 10 * log10(
        1 / criterion(F.interpolate(coarse, scale_factor=2, mode="bicubic", align_corners=False), fine).item()
    )
assert torch.equal(
    F.pixel_unshuffle(F.pixel_shuffle(torch.arange(16.0).view(1, 4, 2, 2), 2), 2).flatten(), torch.arange(16.0)
)
assert psnr > plain, (psnr, plain)
print("learned", psnr, plain)
