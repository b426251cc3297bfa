"""A variational autoencoder and a generative adversarial net on points on a circle, and a siamese
net that compares them.
"""

import math

import torch
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(4)


def circle(n):
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.02 * torch.randn(n, 2)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(2, 64), nn.Linear(64, 2), nn.Linear(64, 2)
        self.fc3, self.fc4 = nn.Linear(2, 64), nn.Linear(64, 2)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        return self.fc4(F.relu(self.fc3(self.reparameterize(mu, logvar)))), mu, logvar


vae = VAE()
optimizer = optim.Adam(vae.parameters(), lr=1e-2)
history = []
for _ in range(200):
    x = circle(128)
    recon, mu, logvar = vae(x)
    loss = (
        20 * F.mse_loss(recon, x, reduction="sum") / 128 - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / 128
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
assert history[-1] < 0.4 * history[0], (history[0], history[-1])


def weights_init(m):
    if m.__class__.__name__.find("Linear") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.3)
        torch.nn.init.zeros_(m.bias)


netG = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(True), nn.Linear(32, 2))
netD = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1), nn.Sigmoid())
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=5e-3, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=5e-3, betas=(0.5, 0.999))
for _ in range(300):
    real, noise = circle(64), torch.randn(64, 4)
    netD.zero_grad()
    label = torch.full((64,), 1.0)
    errD_real = criterion(netD(real).view(-1), label)
    errD_real.backward()
    fake = netG(noise)
    label.fill_(0.0)
    errD_fake = criterion(netD(fake.detach()).view(-1), label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake).view(-1), label)
    errG.backward()
    optimizerG.step()
radius = netG(torch.randn(500, 4)).norm(dim=1).mean().item()
assert 0.4 < radius < 1.6, radius

twin = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = optim.Adam(twin.parameters(), lr=1e-2)
loss_of = nn.TripletMarginLoss(margin=1.0)
for _ in range(100):
    anchor = circle(64)
    loss = loss_of(twin(anchor), twin(anchor + 0.05 * torch.randn(64, 2)), twin(circle(64)))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
near = F.pairwise_distance(twin(anchor), twin(anchor + 0.05)).mean().item()
far = F.pairwise_distance(twin(anchor), twin(-anchor)).mean().item()
assert far > 5 * near, (near, far)
print("learned", history[-1], radius, near, far)
