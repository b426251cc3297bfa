"""The overhead of one call: operators on a few elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..inputs import fill, integers, normal, uniform
from ..workload import Make, Work, Workload


def _of(function: Callable[[Any, Any, Any], Work], grad: bool = False) -> Make:
    """Make the work from two tensors of four elements. The first may require grad."""

    def make(xp: Any) -> Work:
        return function(xp, normal(4, grad=grad).make(xp), normal(4, number=1).make(xp))

    return make


def _matrix(function: Callable[[Any, Any], Work], *shape: int) -> Make:
    def make(xp: Any) -> Work:
        return function(xp, uniform(*(shape or (8, 8))).make(xp))

    return make


def _layer(build: Callable[[Any], Any], *shape: int) -> Make:
    def make(xp: Any) -> Work:
        module, x = fill(xp, build(xp)), normal(*shape).make(xp)
        return lambda: module(x)

    return make


def _chain(xp: Any) -> Work:
    x = normal(4, grad=True).make(xp)

    def run() -> Any:
        y = x
        for _ in range(20):
            y = y * 1.01 + 0.1
        y.sum().backward()
        gradient, x.grad = x.grad, None
        return gradient

    return run


def _linear_backward(xp: Any) -> Work:
    module, x = fill(xp, xp.nn.Linear(8, 8)), normal(1, 8).make(xp)

    def run() -> Any:
        module(x).sum().backward()
        gradient, module.weight.grad, module.bias.grad = module.weight.grad, None, None
        return gradient

    return run


def _cross_entropy(xp: Any) -> Work:
    x, classes = normal(8, 10).make(xp), integers(10, 8).make(xp)
    return lambda: xp.nn.functional.cross_entropy(x, classes)


def _mse(xp: Any) -> Work:
    x, y = normal(8, 8).make(xp), normal(8, 8, number=1).make(xp)
    return lambda: xp.nn.functional.mse_loss(x, y)


def _sequential(xp: Any) -> Any:
    return xp.nn.Sequential(xp.nn.Linear(8, 8), xp.nn.ReLU(), xp.nn.Linear(8, 8))


def _gradient(xp: Any) -> Work:
    x = normal(4, grad=True).make(xp)
    x.sum().backward()
    return lambda: x.grad


def _no_grad(xp: Any) -> Work:
    def run() -> None:
        with xp.no_grad():
            pass

    return run


def _zero_grad(xp: Any) -> Work:
    module, x = fill(xp, _sequential(xp)), normal(1, 8).make(xp)
    module(x).sum().backward()
    return lambda: module.zero_grad()


def _advanced(xp: Any) -> Work:
    x, index = normal(16, 4).make(xp), integers(16, 8).make(xp)
    return lambda: x[index]


def _assign(xp: Any) -> Work:
    x = normal(8, 8).make(xp)

    def run() -> Any:
        x[2] = 1.0
        return x

    return run


def _call(name: str, make: Make, recording: bool = True, limit: float = 0.35, comparable: bool = True) -> Workload:
    return Workload(name, make, limit=limit, recording=recording, comparable=comparable, group="call")


WORKLOADS = [
    _call("a + b, 4 elements", _of(lambda xp, a, b: lambda: a + b)),
    _call("a + b, requires_grad", _of(lambda xp, a, b: lambda: a + b, grad=True)),
    _call("a * 2.0", _of(lambda xp, a, b: lambda: a * 2.0)),
    _call("a * 2.0, requires_grad", _of(lambda xp, a, b: lambda: a * 2.0, grad=True)),
    _call("a += b", _of(lambda xp, a, b: lambda: a.copy_(b).add_(b))),
    _call("add(a, b, out=)", _of(lambda xp, a, b: lambda: xp.add(b, b, out=a))),
    _call("a < b", _of(lambda xp, a, b: lambda: a < b)),
    _call("-a", _of(lambda xp, a, b: lambda: -a)),
    _call("exp(a)", _of(lambda xp, a, b: lambda: xp.exp(a))),
    _call("relu(a)", _of(lambda xp, a, b: lambda: xp.relu(a))),
    _call("clamp(a, 0, 1)", _of(lambda xp, a, b: lambda: xp.clamp(a, 0, 1))),
    _call("where(a < b, a, b)", _of(lambda xp, a, b: lambda: xp.where(a < b, a, b))),
    _call("x[0]", _matrix(lambda xp, x: lambda: x[0])),
    _call("x[0, 1]", _matrix(lambda xp, x: lambda: x[0, 1])),
    _call("x[1:3]", _matrix(lambda xp, x: lambda: x[1:3])),
    _call("x[:, None]", _matrix(lambda xp, x: lambda: x[:, None])),
    _call("x[index]", _advanced),
    _call("x[2] = 1.0", _assign),
    _call("for row in x, 8 rows", _matrix(lambda xp, x: lambda: list(x))),
    _call("x.sum()", _matrix(lambda xp, x: lambda: x.sum())),
    _call("x.sum(1)", _matrix(lambda xp, x: lambda: x.sum(1))),
    _call("x.mean(1, keepdim=True)", _matrix(lambda xp, x: lambda: x.mean(1, keepdim=True))),
    _call("x.max(1)", _matrix(lambda xp, x: lambda: x.max(1))),
    _call("x.tolist()", _matrix(lambda xp, x: lambda: x.tolist(), 4)),
    _call("x.item()", _matrix(lambda xp, x: lambda: x.item(), 1)),
    _call("x.view(64)", _matrix(lambda xp, x: lambda: x.view(64))),
    _call("x.reshape(4, 16)", _matrix(lambda xp, x: lambda: x.reshape(4, 16))),
    _call("x.t()", _matrix(lambda xp, x: lambda: x.t())),
    _call("x.t().contiguous()", _matrix(lambda xp, x: lambda: x.t().contiguous())),
    _call("x.permute(2, 0, 1)", _matrix(lambda xp, x: lambda: x.permute(2, 0, 1), 2, 3, 4)),
    _call("x.unsqueeze(0)", _matrix(lambda xp, x: lambda: x.unsqueeze(0))),
    _call("x.expand(4, 8, 8)", _matrix(lambda xp, x: lambda: x.expand(4, 8, 8))),
    _call("x.split(4)", _matrix(lambda xp, x: lambda: x.split(4))),
    _call("x.clone()", _matrix(lambda xp, x: lambda: x.clone())),
    _call("x.detach()", _matrix(lambda xp, x: lambda: x.detach())),
    _call("x.to(float64)", _matrix(lambda xp, x: lambda: x.to(xp.float64))),
    _call("x.float()", _matrix(lambda xp, x: lambda: x.double().float())),
    _call("x.to(device)", _matrix(lambda xp, x: lambda: x.to("cpu"))),
    _call("x.shape", _matrix(lambda xp, x: lambda: x.shape)),
    _call("x @ x, 8 x 8", _matrix(lambda xp, x: lambda: x @ x)),
    _call("cat of two", _of(lambda xp, a, b: lambda: xp.cat((a, b)))),
    _call("stack of two", _of(lambda xp, a, b: lambda: xp.stack((a, b)))),
    _call("zeros(4)", _of(lambda xp, a, b: lambda: xp.zeros(4))),
    _call("empty(4)", _of(lambda xp, a, b: lambda: xp.empty(4)), comparable=False),
    _call("full((2, 3), 1.5)", _of(lambda xp, a, b: lambda: xp.full((2, 3), 1.5))),
    _call(
        "zeros(2, 3, dtype=, requires_grad=)",
        _of(lambda xp, a, b: lambda: xp.zeros(2, 3, dtype=xp.float64, requires_grad=True)),
    ),
    _call("ones_like(x)", _matrix(lambda xp, x: lambda: xp.ones_like(x))),
    _call("tensor([1., 2., 3.])", _of(lambda xp, a, b: lambda: xp.tensor([1.0, 2.0, 3.0]))),
    _call("arange(8)", _of(lambda xp, a, b: lambda: xp.arange(8))),
    _call("softmax of 8 x 8", _matrix(lambda xp, x: lambda: xp.softmax(x, 1))),
    _call("layer_norm of 8 x 8", _matrix(lambda xp, x: lambda: xp.nn.functional.layer_norm(x, (8,)))),
    _call("cross_entropy of 8 x 10", _cross_entropy),
    _call("mse_loss of 8 x 8", _mse),
    _call("no_grad()", _no_grad, comparable=False),
    _call("x.grad", _gradient),
    _call("Sequential of Linear, ReLU, Linear, no grad", _layer(_sequential, 1, 8), recording=False),
    _call("Sequential of Linear, ReLU, Linear, recorded", _layer(_sequential, 1, 8)),
    _call("zero_grad() of two layers", _zero_grad, comparable=False),
    _call("nn.Linear(8, 8), no grad", _layer(lambda xp: xp.nn.Linear(8, 8), 1, 8), recording=False),
    _call("nn.Linear(8, 8), recorded", _layer(lambda xp: xp.nn.Linear(8, 8), 1, 8)),
    _call("nn.ReLU()", _layer(lambda xp: xp.nn.ReLU(), 1, 8)),
    _call("nn.LayerNorm(8)", _layer(lambda xp: xp.nn.LayerNorm(8), 1, 8), recording=False),
    _call("nn.Conv2d(3, 8, 3), 1 x 3 x 8 x 8", _layer(lambda xp: xp.nn.Conv2d(3, 8, 3), 1, 3, 8, 8), recording=False),
    _call("nn.Linear(8, 8), sum, backward", _linear_backward),
    _call("20 x (x * 1.01 + 0.1), backward", _chain),
]
