"""Test state dicts."""

from collections import OrderedDict

import numpy as np
import pytest

import candelabra
from candelabra import nn


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))


KEYS = [
    "0.weight",
    "0.bias",
    "1.0.weight",
    "1.0.bias",
    "1.0.running_mean",
    "1.0.running_var",
    "1.0.num_batches_tracked",
]


def test_contents():
    model = net()
    state = model.state_dict()
    assert list(state) == KEYS and isinstance(state, OrderedDict)
    assert state._metadata[""] == {"version": 1} and state._metadata["1.0"] == {"version": 2}
    assert not state["0.weight"].requires_grad
    state["0.weight"][0, 0] = 7
    assert model[0].weight[0, 0].item() == 7
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight
    assert list(model.state_dict(prefix="m.")) == ["m." + key for key in KEYS]
    into = OrderedDict(x=1)
    assert model.state_dict(destination=into) is into and list(into) == ["x", *KEYS]


def test_round_trip():
    one, two = net(), net()
    one[1][0].running_mean.fill_(3)
    assert repr(two.load_state_dict(one.state_dict())) == "<All keys matched successfully>"
    for mine, theirs in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    two[0].weight.detach().zero_()
    assert one[0].weight.abs().sum().item() > 0


def test_messages():
    model = net()
    state = model.state_dict()
    del state["1.0.running_mean"]
    state["1.0.weight"] = candelabra.ones(4)
    state["x"] = state["2.y"] = state["0.z"] = candelabra.ones(1)
    state["0.bias"] = 3
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "1.0.running_mean". \n'
        '\tUnexpected key(s) in state_dict: "x", "2.y", "0.z". \n'
        '\tWhile copying the parameter named "0.bias", expected candelabra.Tensor or Tensor-like object from checkpoint but received '
        "<class 'int'>\n"
        "\tsize mismatch for 1.0.weight: copying a param with shape candelabra.Size([4]) from checkpoint, the shape in current model is "
        "candelabra.Size([3])."
    )


def test_not_strict():
    model = net()
    state = {"0.bias": candelabra.ones(3), "x": candelabra.ones(1)}
    result = model.load_state_dict(state, strict=False)
    assert result.unexpected_keys == ["x"] and result.missing_keys == [
        "0.weight",
        *KEYS[2:-1],
    ]  # state dicts without a version lack num_batches_tracked
    assert "unexpected_keys=['x']" in repr(result)
    np.testing.assert_array_equal(model[0].bias.detach().numpy(), np.ones(3))
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_state_dict({"0.bias": candelabra.ones(4)}, strict=False)
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        model.load_state_dict([1])


def test_assign_takes_the_tensors():
    model = net()
    state = {key: value.double() if value.is_floating_point() else value for key, value in net().state_dict().items()}
    model.load_state_dict(state, assign=True)
    assert model[0].weight.dtype == candelabra.float64 and isinstance(model[0].weight, nn.Parameter)
    assert model[0].weight.requires_grad and model[1][0].running_mean is state["1.0.running_mean"]


def test_copying_converts_dtypes():
    model = nn.Linear(2, 2)
    model.load_state_dict(nn.Linear(2, 2).double().state_dict())
    assert model.weight.dtype == candelabra.float32


def test_old_scalars():
    model = nn.Module()
    model.p = nn.Parameter(candelabra.tensor(1.0))
    model.load_state_dict({"p": candelabra.tensor([4.0])})
    assert model.p.item() == 4


def test_batch_norm_of_version_one():
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    model = nn.BatchNorm1d(2)
    model.num_batches_tracked.fill_(5)
    model.load_state_dict(state)
    assert model.num_batches_tracked.item() == 5
    state._metadata[""]["version"] = 2
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        model.load_state_dict(state)


def test_extra_state():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    one = nn.Sequential(Counter())
    one[0].count = 5
    state = one.state_dict()
    assert state["0._extra_state"] == {"count": 5}
    two = nn.Sequential(Counter())
    two.load_state_dict(state)
    assert two[0].count == 5
    with pytest.raises(RuntimeError, match="Missing key.*_extra_state"):
        two.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected key.*_extra_state"):
        nn.Sequential(nn.ReLU()).load_state_dict(state)


def test_hooks():
    model = nn.Sequential(nn.Linear(1, 1))
    calls = []
    handles = [
        model[0].register_state_dict_pre_hook(
            lambda module, prefix, keep_vars: calls.append(("pre", prefix, keep_vars))
        ),
        model[0].register_state_dict_post_hook(
            lambda module, state, prefix, metadata: state.update({prefix + "more": 1})
        ),
        model[0].register_load_state_dict_pre_hook(
            lambda module, state, prefix, *rest: state.pop(prefix + "more", None)
        ),
        model.register_load_state_dict_post_hook(lambda module, keys: calls.append(("post", list(keys.missing_keys)))),
    ]
    state = model.state_dict()
    assert list(state) == ["0.weight", "0.bias", "0.more"]
    model.load_state_dict(state)
    assert calls == [("pre", "0.", False), ("post", [])]
    for handle in handles:
        handle.remove()
    assert list(model.state_dict()) == ["0.weight", "0.bias"] and len(calls) == 2
    model.register_load_state_dict_post_hook(lambda module, keys: 3)
    with pytest.raises(RuntimeError, match="not expected to return new values"):
        model.load_state_dict(model.state_dict())
