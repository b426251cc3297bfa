"""Test that memory does not grow over ten thousand training steps and other repeated work."""

from __future__ import annotations

import copy
import gc
import os
import pickle

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim

MEBIBYTE = 2**20

resident_only = pytest.mark.skipif(
    "CANDELABRA_SANITIZED" in os.environ, reason="AddressSanitizer keeps what is freed for a while"
)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def allocated() -> int:
    """Return the bytes that CPU tensors hold."""
    return candelabra.backends.memory_statistics("cpu")["allocated"]


# ---- training


def multilayer_perceptron():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, candelabra.rand(32, 64), candelabra.randint(0, 10, (32,)), nn.CrossEntropyLoss()


def convolutional_net():
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.GELU(), nn.Flatten(),
        nn.Dropout(0.1), nn.LayerNorm(16 * 2 * 2), nn.Linear(16 * 2 * 2, 10),
    )  # fmt: skip
    return model, candelabra.rand(16, 1, 8, 8), candelabra.randint(0, 10, (16,)), nn.CrossEntropyLoss()


OPTIMIZERS = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "Adam": lambda parameters: optim.Adam(parameters, lr=1e-4),
}


@resident_only
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("build", "steps"), [(multilayer_perceptron, 10_000), (convolutional_net, 2_000)])
def test_training_steps(build, steps, optimizer):
    candelabra.manual_seed(0)
    model, inputs, targets, criterion = build()
    stepper = OPTIMIZERS[optimizer](model.parameters())
    losses = []

    def step():
        stepper.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        stepper.step()
        return loss

    for _ in range(300):
        losses.append(step().item())
    gc.collect()
    memory, tensors = resident(), allocated()
    for _ in range(steps):
        loss = step()
    assert resident() - memory < 5 * MEBIBYTE
    assert allocated() - tensors < MEBIBYTE // 16  # the last loss and its graph
    assert loss.item() < losses[0]


# ---- other repeated work


def make_and_drop():
    x = candelabra.rand(100, 100)
    y = (x + 1).reshape(-1).clone().tolist()
    x[0] = 5
    return x.sum().item() + len(y)


def views_and_slices():
    x = candelabra.rand(20, 30)
    views = [
        x[1:],
        x[:, ::2],
        x.t(),
        x.unsqueeze(0).expand(5, 20, 30),
        *x.unbind(0),
        *x.split(7),
        x[x > 0.5],
        x[[0, 1]],
        x[..., None],
    ]
    views[0].mul_(2)
    return [view._base is x for view in views], list(x)


def record_and_drop():
    x = candelabra.rand(10, 10, requires_grad=True)
    y = (x.exp() @ x).tanh().softmax(0)
    y[0].mul_(2)
    z = candelabra.cat([y, x]).sort()[0].sum()
    return z  # no backward through this graph


def record_and_walk():
    x = candelabra.rand(10, 10, requires_grad=True)
    (first,) = candelabra.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    (first * x).sum().backward()
    x.register_hook(lambda grad: grad * 2)
    (x * x).sum().backward()
    x.grad.mine = x  # a reference cycle


def cycles():
    x = candelabra.rand(10)
    x.itself = x
    y = x[1:]
    y.base = x
    x.view = y


def errors_of_shape_rules():
    x = candelabra.rand(3, 4)
    for call in (
        lambda: x @ x,
        lambda: x.reshape(5),
        lambda: x + candelabra.rand(5),
        lambda: x.sum(7),
        lambda: candelabra.cat([x, x[0]]),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()


def errors_of_kernels():
    x = candelabra.rand(1000)
    for call in (
        lambda: x[candelabra.full((1000,), 1000, dtype=candelabra.int64)],
        lambda: candelabra.ones(9, dtype=candelabra.int64) // 0,
        lambda: x.gather(0, candelabra.tensor([-1001])),
        lambda: candelabra.bernoulli(x + 2),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()


def errors_of_arguments():
    x = candelabra.rand(3)
    for call in (
        lambda: x.sum(dim="a"),
        lambda: x.add(),
        lambda: x.add(1, 2, 3),
        lambda: x.add(object()),
        lambda: x.view(dtype=5),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    with pytest.raises(candelabra.OutOfMemoryError):
        candelabra.empty(10**13)


def numpy_round_trips():
    array = np.ones((50, 50))
    x = candelabra.from_numpy(array)
    y = x.numpy()
    z = np.asarray(candelabra.rand(30))
    w = candelabra.tensor(array)
    return x[0].numpy().sum() + y.sum() + z.sum() + w.sum().item()


def dlpack_round_trips():
    x = candelabra.rand(50, 50)
    y = candelabra.from_dlpack(x)
    x.__dlpack__()  # an unused capsule
    z = np.from_dlpack(x)
    w = candelabra.from_dlpack(z)
    return y.sum().item() + z.sum() + w.sum().item()


def copies():
    x = candelabra.rand(20, 20)
    x.note = [x]
    pickle.loads(pickle.dumps(candelabra.rand(20)))
    copy.deepcopy(x)
    copy.copy(x)


class Tagged(candelabra.Tensor):
    pass


def subclasses():
    x = candelabra.Tensor._make_subclass(Tagged, candelabra.rand(10))
    x.tag = object()
    return (x + 1).sum()


def printing():
    return (
        repr(candelabra.rand(5, 5))
        + str(candelabra.ones(3, dtype=candelabra.complex64))
        + repr(candelabra.rand(2).shape)
    )


def random_numbers():
    generator = candelabra.Generator().manual_seed(5)
    return candelabra.rand(100, generator=generator), candelabra.randperm(100), generator.get_state()


def lists_and_outputs():
    x = candelabra.rand(10, 10)
    out = candelabra.empty(0)
    candelabra.add(x, 1, out=out)
    candelabra.max(x, 0, out=(candelabra.empty(0), candelabra.empty(0, dtype=candelabra.int64)))
    return candelabra.stack([x, x]), candelabra.einsum("ij,jk->ik", x, x), candelabra.nonzero(x), x.topk(3)


def modules():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.register_forward_hook(lambda *_: None)
    model.load_state_dict(model.state_dict())
    model.to(candelabra.float64)
    optim.Adam(model.parameters()).state_dict()
    return repr(model)


WORK = [
    make_and_drop, views_and_slices, record_and_drop, record_and_walk, cycles, errors_of_shape_rules, errors_of_kernels,
    errors_of_arguments, numpy_round_trips, dlpack_round_trips, copies, subclasses, printing, random_numbers, lists_and_outputs, modules,
]  # fmt: skip


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_what_is_done_again_leaves_nothing(work):
    for _ in range(50):
        work()
    gc.collect()
    tensors, objects, memory = allocated(), len(gc.get_objects()), resident()
    for _ in range(400):
        work()
    gc.collect()
    assert allocated() == tensors
    assert len(gc.get_objects()) - objects < 40
    if "CANDELABRA_SANITIZED" not in os.environ:
        assert resident() - memory < MEBIBYTE
