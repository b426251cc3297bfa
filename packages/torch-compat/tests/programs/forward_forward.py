"""The forward-forward algorithm: each layer has its own loss and optimizer, and nothing is
propagated back between layers.
"""

import torch
import torch.nn as nn
from torch.optim import Adam

torch.manual_seed(1234)
centers = 2 * torch.randn(4, 12)


def data(n):
    y = torch.randint(4, (n,))
    return torch.cat([torch.zeros(n, 4), centers[y] + torch.randn(n, 12)], 1), y


def overlay_label(x, y):
    x = x.clone()
    x[:, :4] = 0.0
    x[range(x.shape[0]), y] = x.max()
    return x


class Layer(nn.Linear):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        self.relu = nn.ReLU()
        self.opt = Adam(self.parameters(), lr=0.03)
        self.threshold = 1.5

    def forward(self, x):
        x_direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.relu(torch.mm(x_direction, self.weight.T) + self.bias.unsqueeze(0))

    def train(self, *arguments):
        if (arguments and isinstance(arguments[0], bool)) or not arguments:
            return super().train(*arguments)
        x_pos, x_neg = arguments
        for _ in range(60):
            g_pos = self.forward(x_pos).pow(2).mean(1)
            g_neg = self.forward(x_neg).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-g_pos + self.threshold, g_neg - self.threshold]))).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return self.forward(x_pos).detach(), self.forward(x_neg).detach()


layers = [Layer(16, 64), Layer(64, 64)]


def predict(x):
    per_label = []
    for label in range(4):
        h, goodness = overlay_label(x, label), []
        for layer in layers:
            h = layer(h)
            goodness.append(h.pow(2).mean(1))
        per_label.append(sum(goodness).unsqueeze(1))
    return torch.cat(per_label, 1).argmax(1)


x, y = data(400)
before = predict(x).eq(y).float().mean().item()
x_pos, x_neg = overlay_label(x, y), overlay_label(x, (y + torch.randint(1, 4, (400,))) % 4)
for layer in layers:
    x_pos, x_neg = layer.train(x_pos, x_neg)
x, y = data(400)
after = predict(x).eq(y).float().mean().item()
assert after > 0.75, (before, after)
print("learned", before, after)
