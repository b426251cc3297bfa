"""Functions with gradients of one's own: saved tensors, several results, a straight-through
estimate, double backward, gradcheck, checkpointing.
"""

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias):
        return input.mm(weight.t()) + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, _ = ctx.saved_tensors
        grad_input = grad_output.mm(weight) if ctx.needs_input_grad[0] else None
        return grad_input, grad_output.t().mm(input), grad_output.sum(0)


class SplitSign(Function):
    @staticmethod
    def forward(ctx, x):
        positive = x.clamp(min=0)
        ctx.mark_non_differentiable(sign := x.sign())
        ctx.save_for_backward(sign)
        return positive, sign

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_positive, _):
        (sign,) = ctx.saved_tensors
        return grad_positive * (sign > 0)


class Quantize(Function):
    """Rounds; its gradient is that of no rounding."""

    @staticmethod
    def forward(ctx, x, levels):
        return (x * levels).round() / levels

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Count(Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Count.calls += 1
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


double = dict(dtype=torch.double, requires_grad=True)
assert torch.autograd.gradcheck(LegendrePolynomial3.apply, (torch.randn(5, **double),))
assert torch.autograd.gradgradcheck(LegendrePolynomial3.apply, (torch.randn(5, **double),))
assert torch.autograd.gradcheck(
    LinearFunction.apply, (torch.randn(4, 3, **double), torch.randn(2, 3, **double), torch.randn(2, **double))
)
x = torch.tensor([-1.0, 2.0], requires_grad=True)
positive, sign = SplitSign.apply(x)
assert not sign.requires_grad
positive.sum().backward()
assert x.grad.tolist() == [0.0, 1.0]
y = Count.apply(x * 1)
assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2.0, 2.0] and Count.calls == 1

a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
t = torch.linspace(-3.14159, 3.14159, 200)
for _ in range(1500):
    y_pred = a + b * LegendrePolynomial3.apply(c + d * t)
    loss = (y_pred - torch.sin(t)).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
assert loss.item() < 60, loss

net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
data = torch.rand(64, 4)
for _ in range(100):
    code = Quantize.apply(checkpoint(net, data, use_reentrant=False), 8)
    error = nn.functional.mse_loss(code, data)
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
assert error.item() < 0.02, error
print("learned", loss.item(), error.item())
