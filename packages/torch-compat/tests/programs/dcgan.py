"""A DCGAN on small images: transposed convolutions, batch norm, BCEWithLogits, spectral norm, EMA
of the generator by AveragedModel.
"""

import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(999)
nz, ngf, ndf = 8, 8, 8


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.05)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            spectral_norm(nn.Conv2d(1, ndf, 4, 2, 1, bias=False)), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def real_images(n):
    """Round spots in the middle, of sizes of chance."""
    axis = torch.linspace(-1, 1, 16)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    radius = 0.3 + 0.3 * torch.rand(n, 1, 1, 1)
    return torch.where(x * x + y * y < radius**2, 1.0, -1.0)


netG, netD = Generator(), Discriminator()
netG.apply(weights_init)
netD.apply(weights_init)
average = AveragedModel(netG, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(32, nz, 1, 1)
optimizerD = torch.optim.Adam(netD.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=0.004, betas=(0.5, 0.999))


def middle_and_corner(images):
    return images[..., 6:10, 6:10].mean().item(), images[..., :2, :2].mean().item()


before = middle_and_corner(netG(fixed_noise).detach())
for _i in range(120):
    netD.zero_grad()
    real = real_images(32)
    label = torch.full((32,), 1.0)
    errD_real = criterion(netD(real), label)
    errD_real.backward()
    fake = netG(torch.randn(32, nz, 1, 1))
    label.fill_(0.0)
    errD_fake = criterion(netD(fake.detach()), label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake), label)
    errG.backward()
    optimizerG.step()
    average.update_parameters(netG)
with torch.no_grad():
    after = middle_and_corner(average.module.eval()(fixed_noise))
assert after[0] - after[1] > before[0] - before[1] + 0.5, (before, after)
print("learned", before, after)
