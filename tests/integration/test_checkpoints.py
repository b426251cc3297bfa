"""Test training that is saved, loaded and resumed."""

import copy
import io
import pickle
import zipfile

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F


def model():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)).double()


def step(net, optimizer, schedule, rng):
    x, y = candelabra.tensor(rng.standard_normal((16, 4))), candelabra.tensor(rng.standard_normal((16, 2)))
    optimizer.zero_grad()
    F.smooth_l1_loss(net(x), y).backward()
    optimizer.step()
    schedule.step()


def through_a_file(objects):
    buffer = io.BytesIO()
    candelabra.save(objects, buffer)
    buffer.seek(0)
    return candelabra.load(buffer)


WAYS = {
    "pickle": lambda objects: pickle.loads(pickle.dumps(objects)),
    "deepcopy": copy.deepcopy,
    "file": through_a_file,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_resumed_training_is_the_same(name, way):
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    net = model()
    optimizer = getattr(optim, name)(net.parameters(), lr=0.05, **options)
    schedule = optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    first = np.random.default_rng(0)
    for _ in range(5):
        step(net, optimizer, schedule, first)
    saved = WAYS[way]({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()})

    other = model()
    assert str(other.load_state_dict(saved["net"])) == "<All keys matched successfully>"
    other_optimizer = getattr(optim, name)(other.parameters(), lr=1.0)
    other_schedule = optim.lr_scheduler.StepLR(other_optimizer, 3, 0.5)
    other_optimizer.load_state_dict(saved["optimizer"])
    other_schedule.load_state_dict(saved["schedule"])
    for one, two, plan in ((net, optimizer, schedule), (other, other_optimizer, other_schedule)):
        again = np.random.default_rng(1)
        for _ in range(5):
            step(one, two, plan, again)
    for (key, mine), theirs in zip(net.state_dict().items(), other.state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), err_msg=key)
    # And back again.
    net.load_state_dict(WAYS[way](other.state_dict()))
    optimizer.load_state_dict(WAYS[way](other_optimizer.state_dict()))
    assert optimizer.param_groups[0]["lr"] == other_optimizer.param_groups[0]["lr"]


def test_whole_model_by_pickle():
    net = model()
    x = candelabra.ones(3, 4, dtype=candelabra.float64)
    net(x).sum().backward()
    other = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(net.eval()(x).detach().numpy(), other.eval()(x).detach().numpy())
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in other.parameters())
    twin = copy.deepcopy(net)
    np.testing.assert_array_equal(twin[0].weight.grad.numpy(), net[0].weight.grad.numpy())


def test_conversion_between_steps():
    net = model().float()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    net(candelabra.ones(2, 4)).sum().backward()
    weight = net[0].weight
    net.double()
    assert net[0].weight is weight and weight.grad.dtype == candelabra.float64
    optimizer.step()
    optimizer.zero_grad()
    net(candelabra.ones(2, 4, dtype=candelabra.float64)).sum().backward()
    optimizer.step()
    assert weight.dtype == candelabra.float64 and weight.requires_grad


def test_shared_parameters_get_one_gradient():
    shared = nn.Linear(3, 3, bias=False)
    net = nn.Sequential(shared, nn.Tanh(), shared)
    net(candelabra.ones(1, 3)).sum().backward()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    assert len(optimizer.param_groups[0]["params"]) == 1 and shared.weight.grad is not None


def test_allowed_classes_are_known_by_pytorch_s_names():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02ctorch.nn.modules.conv\nConv2d\n.")
        archive.writestr("archive/version", "3\n")
    with candelabra.serialization.safe_globals([nn.Conv2d]):
        assert candelabra.serialization.get_safe_globals() == [nn.Conv2d]
        assert candelabra.load(file) is nn.Conv2d
