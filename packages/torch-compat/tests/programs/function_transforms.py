"""torch.func: an ensemble trained at once by vmap, gradients of each sample, Jacobians and
Hessians, MAML's inner step, parametrizations, pruning.
"""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
import torch.nn.utils.prune as prune
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn.utils.parametrizations import orthogonal, weight_norm

torch.manual_seed(0)
x = torch.randn(100, 2)
y = (x[:, 0] > x[:, 1]).long()


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(2, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


models = [MLP() for _ in range(4)]
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0])


def loss_of(params, buffers, x, y):
    return F.cross_entropy(functional_call(base, (params, buffers), (x,)), y)


step = vmap(grad_and_value(loss_of), in_dims=(0, 0, None, None))
for _ in range(60):
    gradients, losses = step(params, buffers, x, y)
    with torch.no_grad():
        params = {name: value - 0.5 * gradients[name] for name, value in params.items()}
assert losses.shape == (4,) and losses.max() < 0.25, losses

model = MLP()
weights = {name: p.detach() for name, p in model.named_parameters()}


def loss_of_sample(weights, sample, target):
    return F.cross_entropy(functional_call(model, weights, (sample.unsqueeze(0),)), target.unsqueeze(0))


per_sample = vmap(grad(loss_of_sample), in_dims=(None, 0, 0))(weights, x, y)
F.cross_entropy(model(x), y).backward()
for name, p in model.named_parameters():
    assert torch.allclose(per_sample[name].mean(0), p.grad, atol=1e-6)


def f(v):
    return (v.sin() * v.flip(0)).sum() + v.prod()


v = torch.randn(4, dtype=torch.double)
H = hessian(f)(v)
assert torch.allclose(H, H.T) and torch.allclose(jacrev(f)(v), grad(f)(v))
value, tangent = jvp(f, (v,), (torch.ones_like(v),))
_, pull = vjp(f, v)
assert torch.allclose(tangent, pull(torch.ones_like(value))[0].sum())
assert torch.allclose(vmap(torch.dot)(torch.ones(3, 4), torch.arange(12.0).view(3, 4)), torch.tensor([6.0, 22.0, 38.0]))


def inner(weights, slope):
    inputs = torch.linspace(-1, 1, 10)[:, None]
    first = grad(lambda w: F.mse_loss(w["w"] * inputs, slope * inputs))(weights)
    adapted = {name: value - 0.5 * first[name] for name, value in weights.items()}
    return F.mse_loss(adapted["w"] * inputs, slope * inputs)


meta = {"w": torch.tensor(5.0)}
slopes = torch.tensor([1.0, 2.0, 3.0])
for _ in range(60):
    change = grad(lambda w: vmap(inner, in_dims=(None, 0))(w, slopes).mean())(meta)
    meta = {name: value - 1.0 * change[name] for name, value in meta.items()}
assert abs(meta["w"].item() - 2) < 0.05, meta


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
assert torch.equal(layer.weight, layer.weight.T) and parametrize.is_parametrized(layer)
layer(torch.randn(2, 3)).sum().backward()
assert layer.parametrizations.weight.original.grad is not None
turning = orthogonal(nn.Linear(4, 4))
assert torch.allclose(turning.weight @ turning.weight.T, torch.eye(4), atol=1e-5)
normed = weight_norm(nn.Linear(3, 5))
assert torch.allclose(normed.weight.norm(dim=1, keepdim=True), normed.parametrizations.weight.original0, atol=1e-5)
pruned = prune.l1_unstructured(nn.Linear(10, 10), "weight", amount=0.3)
assert (pruned.weight == 0).sum() == 30 and "weight_mask" in dict(pruned.named_buffers())
prune.remove(pruned, "weight")
assert (pruned.weight == 0).sum() == 30 and isinstance(pruned.weight, nn.Parameter)
print("learned", losses.tolist(), meta["w"].item())
