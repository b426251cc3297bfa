"""Style transfer: an input is optimized by LBFGS so that features of a frozen net match, with
losses as layers of a Sequential.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(2)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_device(device)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = mean.view(-1, 1, 1), std.view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


cnn = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True),
    nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(inplace=True),
).eval().requires_grad_(False)  # fmt: skip
axis = torch.linspace(0, 1, 16)
content = torch.stack([axis.expand(16, 16), axis[:, None].expand(16, 16), torch.full((16, 16), 0.5)])[None]
style = (torch.arange(16) // 2 % 2).float().expand(1, 3, 16, 16)

model = nn.Sequential(Normalization(torch.tensor([0.5, 0.4, 0.4]), torch.tensor([0.2, 0.2, 0.2])))
content_losses, style_losses, number = [], [], 0
for layer in cnn.children():
    if isinstance(layer, nn.Conv2d):
        number += 1
        name = f"conv_{number}"
    elif isinstance(layer, nn.ReLU):
        name, layer = f"relu_{number}", nn.ReLU(inplace=False)
    elif isinstance(layer, nn.MaxPool2d):
        name, layer = f"pool_{number}", nn.AvgPool2d(2)
    model.add_module(name, layer)
    if name == "conv_2":
        content_losses.append(ContentLoss(model(content)))
        model.add_module("content_loss", content_losses[-1])
    if name.startswith("conv"):
        style_losses.append(StyleLoss(model(style)))
        model.add_module(f"style_loss_{number}", style_losses[-1])

input_img = content.clone().add_(0.1 * torch.rand_like(content)).requires_grad_(True)
optimizer = optim.LBFGS([input_img], max_iter=20)
run, history = [0], []
while run[0] <= 60:

    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        loss = 1e4 * sum(sl.loss for sl in style_losses) + sum(cl.loss for cl in content_losses)
        loss.backward()
        run[0] += 1
        history.append(loss.item())
        return loss

    optimizer.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
assert min(history) < 0.5 * history[0], (history[0], history[-1])
assert all(p.grad is None for p in cnn.parameters())
print("learned", history[0], min(history))
