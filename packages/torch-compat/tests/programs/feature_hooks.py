"""Hooks: features from the middle of a net, gradients in it (Grad-CAM), hooks of tensors, frozen
layers and a new head.
"""

import functools

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


class FeatureExtractor(nn.Module):
    def __init__(self, model, layers):
        super().__init__()
        self.model, self._features = model, {}
        for name in layers:
            dict(model.named_modules())[name].register_forward_hook(functools.partial(self.save, name))

    def save(self, name, module, inputs, output):
        self._features[name] = output

    def forward(self, x):
        self.model(x)
        return self._features


def images(n):
    y = torch.randint(2, (n,))
    x = 0.2 * torch.randn(n, 1, 10, 10)
    x[y == 1, :, 1:4, 1:4] += 1.5
    return x, y


model = Backbone()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(60):
    x, y = images(32)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.2, loss

features = FeatureExtractor(model, ["layer1", "layer2.0"])(x)
assert {name: tuple(value.shape) for name, value in features.items()} == {
    "layer1": (32, 8, 10, 10),
    "layer2.0": (32, 8, 10, 10),
}

activations, gradients = {}, {}
first = model.layer2.register_forward_hook(lambda module, inputs, output: activations.update(value=output))
second = model.layer2.register_full_backward_hook(
    lambda module, grad_input, grad_output: gradients.update(value=grad_output[0])
)
x = torch.zeros(1, 1, 10, 10)
x[:, :, 1:4, 1:4] = 1.5
model(x)[0, 1].backward()
weights = gradients["value"].mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * activations["value"]).sum(1, keepdim=True))
assert cam[..., 1:4, 1:4].mean() > 2 * cam[..., 6:, 6:].mean()
first.remove()
second.remove()

seen = []
handle = model.fc.weight.register_hook(lambda grad: seen.append(grad.norm().item()) or grad * 0)
pre = model.fc.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
model.zero_grad()
model(x).sum().backward()
assert seen and model.fc.weight.grad.abs().sum() == 0
handle.remove()
pre.remove()

for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 3)
trainable = [name for name, p in model.named_parameters() if p.requires_grad]
assert trainable == ["fc.weight", "fc.bias"]
optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.5)
before = model.layer1[0].weight.clone()
for _ in range(60):
    x, y = images(32)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert torch.equal(before, model.layer1[0].weight) and loss.item() < 0.4, loss
incompatible = model.load_state_dict({"fc.weight": model.fc.weight, "extra": torch.ones(1)}, strict=False)
assert incompatible.unexpected_keys == ["extra"] and "layer1.0.weight" in incompatible.missing_keys
print("learned", loss.item())
