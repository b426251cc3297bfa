"""Test that memory is freed immediately: no step leaves reference cycles for the garbage
collector.
"""

from __future__ import annotations

import gc

import pytest

import candelabra
import candelabra.nn.functional as F
from candelabra import func, nn, optim
from candelabra.autograd.graph import saved_tensors_hooks
from candelabra.utils.checkpoint import checkpoint


def leaf() -> candelabra.Tensor:
    return candelabra.rand(64, requires_grad=True)


def double_backward() -> None:
    x = leaf()
    (first,) = candelabra.autograd.grad(x.sin().square().sum(), x, create_graph=True)
    first.square().sum().backward()


def changed_views() -> None:
    x = candelabra.rand(8, 8, requires_grad=True)
    y = x * 1
    y[0].mul_(2)
    y[:, 1].add_(y[:, 2].clone())
    y.view(-1)[3] = 7
    y.sum().backward()


def never_walked() -> None:
    x = leaf()
    (x.exp() * x).softmax(0).log().view(8, 8)[0].exp_()


def hooks() -> None:
    x = leaf()
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    y.retain_grad()
    y.sum().backward()


def saved_tensors() -> None:
    x = leaf()
    with saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
        y = x.exp() * x
    y.sum().backward()


class Exponential(candelabra.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


def custom_function() -> None:
    Exponential.apply(leaf()).sum().backward()


def failed() -> None:
    x = leaf()
    y = x.exp()
    total = y.sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def transforms() -> None:
    x = candelabra.rand(4)
    func.grad(lambda t: (t.sin() * t).sum())(x)
    func.vmap(lambda t: t.sin().sum())(candelabra.rand(3, 4))
    func.jvp(lambda t: t.exp(), (x,), (x,))
    func.hessian(lambda t: (t**3).sum())(x)
    func.jacrev(candelabra.sin)(x)


def lbfgs() -> None:
    x = leaf()
    optimizer = optim.LBFGS([x], max_iter=3)

    def closure() -> candelabra.Tensor:
        optimizer.zero_grad()
        loss = x.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def mixed_precision() -> None:
    with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
        nn.Linear(8, 8)(candelabra.rand(4, 8)).sum().backward()


def recurrent() -> None:
    outputs, _ = nn.LSTM(4, 8, 2, bidirectional=True)(candelabra.rand(5, 2, 4))
    outputs.sum().backward()


def transformer() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    optimizer = optim.AdamW(model.parameters())
    F.mse_loss(model(candelabra.rand(2, 5, 8)), candelabra.zeros(2, 5, 8)).backward()
    optimizer.step()


def checkpointed() -> None:
    for reentrant in (False, True):
        checkpoint(lambda t: t.sin().exp(), leaf(), use_reentrant=reentrant).sum().backward()


STEPS = [
    double_backward, changed_views, never_walked, hooks, saved_tensors, custom_function, failed, transforms, lbfgs, mixed_precision,
    recurrent, transformer, checkpointed,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_nothing_waits_for_the_collector(step) -> None:
    for _ in range(2):  # warm up caches
        step()
    gc.collect()
    gc.disable()
    try:
        before = candelabra.backends.memory_statistics("cpu")["allocated"]
        for _ in range(5):
            step()
        assert candelabra.backends.memory_statistics("cpu")["allocated"] == before
        assert gc.collect() == 0
    finally:
        gc.enable()
