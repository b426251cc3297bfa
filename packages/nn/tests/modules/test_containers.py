"""Test containers."""

from collections import OrderedDict

import pytest

import candelabra
from candelabra import nn


def layers(*sizes):
    return [nn.Linear(1, size) for size in sizes]


def test_sequential_as_a_list():
    a, b, c = layers(1, 2, 3)
    net = nn.Sequential(a, b, c)
    assert len(net) == 3 and net[0] is a and net[-1] is c and list(net) == [a, b, c]
    assert list(net[1:]) == [b, c] and type(net[:1]) is nn.Sequential
    assert list(net[::2]._modules) == ["0", "2"]
    net[1] = nn.ReLU()
    assert isinstance(net[1], nn.ReLU)
    del net[1]
    assert list(net._modules) == ["0", "1"] and net[1] is c
    net.insert(1, b)
    net.append(nn.Tanh())
    assert [type(m).__name__ for m in net] == ["Linear", "Linear", "Linear", "Tanh"] and net[1] is b
    assert net.pop(-1).extra_repr() == "" and len(net) == 3
    net.extend(nn.Sequential(nn.ReLU()))
    del net[1:]
    assert len(net) == 1
    assert len(nn.Sequential(a) + nn.Sequential(b)) == 2 and len(nn.Sequential(a, b) * 2) == 4 == len(
        2 * nn.Sequential(a, b)
    )
    net *= 3
    net += nn.Sequential(b)
    assert list(net) == [a, a, a, b]
    named = nn.Sequential(OrderedDict(first=a, second=nn.ReLU()))
    assert named.first is a and list(named._modules) == ["first", "second"] and list(named[:1]._modules) == ["first"]


def test_sequential_calls_in_order():
    assert nn.Sequential(nn.Flatten(0), nn.Identity(), nn.ReLU())(candelabra.tensor([[-1.0, 2.0]])).tolist() == [
        0.0,
        2.0,
    ]
    assert nn.Sequential()(3) == 3


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.Sequential(nn.ReLU())[1], IndexError, "index 1 is out of range"),
        (lambda: nn.Sequential(nn.ReLU()) + 3, ValueError, "add operator supports only objects of Sequential class"),
        (lambda: nn.Sequential(nn.ReLU()) * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda: nn.Sequential(nn.ReLU()) * 1.5, TypeError, "unsupported operand"),
        (lambda: nn.Sequential(3), TypeError, "int is not a Module subclass"),
        (lambda: nn.Sequential().insert(2, nn.ReLU()), IndexError, "Index out of range: 2"),
        (lambda: nn.Sequential().insert(0, 3), AssertionError, "module should be of type"),
        (lambda: nn.ModuleList([nn.ReLU()])[1], IndexError, "index 1 is out of range"),
        (lambda: nn.ModuleList(3), TypeError, "ModuleList.extend should be called with an iterable, but got int"),
        (lambda: nn.ModuleList([3]), TypeError, "int is not a Module subclass"),
        (lambda: nn.ModuleList([])(1), NotImplementedError, 'missing the required "forward" function'),
        (
            lambda: nn.ModuleDict(3),
            TypeError,
            "ModuleDict.update should be called with an iterable of key/value pairs, but got int",
        ),
        (lambda: nn.ModuleDict([3]), TypeError, "update sequence element #0 should be Iterable; is int"),
        (lambda: nn.ModuleDict([(1, 2, 3)]), ValueError, "has length 3; 2 is required"),
        (lambda: nn.ModuleDict({"keys": nn.ReLU()}), KeyError, "attribute 'keys' already exists"),
        (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), KeyError, "can't contain"),
        (lambda: nn.ParameterList(3), TypeError, "ParameterList.extend should be called with an iterable, but got int"),
        (lambda: nn.ParameterList()(), RuntimeError, "ParameterList should not be called."),
        (lambda: nn.ParameterDict()(1), RuntimeError, "ParameterDict should not be called."),
        (lambda: nn.ParameterDict({3: candelabra.ones(1)}), TypeError, "cannot be used as a key"),
        (lambda: nn.ParameterDict()["a"], KeyError, "'ParameterDict' object has no attribute 'a'"),
        (lambda: nn.ParameterDict()["a"], AttributeError, "'ParameterDict' object has no attribute 'a'"),
        (lambda: nn.ParameterDict({"keys": candelabra.ones(1)}), KeyError, "already exists"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value.args[0])


def test_module_list():
    a, b, c = layers(1, 2, 3)
    chosen = nn.ModuleList([a, b])
    chosen.append(c).insert(0, nn.ReLU())
    assert [type(m).__name__ for m in chosen] == ["ReLU", "Linear", "Linear", "Linear"] and chosen[-1] is c
    assert list(chosen[1:3]) == [a, b] and len(chosen + [nn.ReLU()]) == 5
    chosen[0] = b
    assert chosen[0] is b and chosen.pop(0) is b and len(chosen) == 3
    del chosen[0]
    assert list(chosen) == [b, c] and list(chosen._modules) == ["0", "1"]
    del chosen[:]
    chosen += [a]
    assert list(chosen) == [a] and list(chosen.state_dict()) == ["0.weight", "0.bias"]
    assert len(list(nn.ModuleList([None, a]).parameters())) == 2


def test_module_list_repr():
    text = repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh()), nn.ReLU()]))
    assert text == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Sequential(\n    (0): Tanh()\n  )\n  (3): ReLU()\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    chosen = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    chosen["c"] = nn.Identity()
    assert list(chosen) == list(chosen.keys()) == ["b", "a", "c"] and "a" in chosen and len(chosen) == 3
    assert isinstance(chosen.pop("a"), nn.Tanh) and "a" not in chosen and not hasattr(chosen, "a")
    assert [type(m).__name__ for m in chosen.values()] == ["ReLU", "Identity"]
    assert dict(chosen.items())["b"] is chosen["b"]
    chosen.update([("b", nn.Tanh())])
    assert isinstance(chosen["b"], nn.Tanh)
    del chosen["b"]
    chosen.clear()
    assert len(chosen) == 0 and repr(chosen) == "ModuleDict()"
    chosen.update(nn.ModuleDict({"z": nn.ReLU()}))
    assert list(chosen) == ["z"]


@pytest.mark.host_only("texts without a device")
def test_parameter_list():
    chosen = nn.ParameterList([candelabra.ones(2, 3), nn.Parameter(candelabra.ones(1)), "text"])
    assert all(isinstance(chosen[i], nn.Parameter) for i in (0, 1)) and chosen[2] == "text" and chosen[-1] == "text"
    assert len(chosen) == 3 and len(list(chosen.parameters())) == 2 and list(chosen.state_dict()) == ["0", "1"]
    assert repr(chosen) == (
        "ParameterList(\n    (0): Parameter containing: [candelabra.float32 of size 2x3]\n"
        "    (1): Parameter containing: [candelabra.float32 of size 1]\n    (2): Object of type: str\n)"
    )
    chosen[2] = candelabra.zeros(1)
    assert isinstance(chosen[2], nn.Parameter) and len(chosen[1:]) == 2
    first = chosen[0]
    assert chosen.pop(1).numel() == 1 and len(chosen) == 2 and chosen[0] is first
    chosen += [candelabra.ones(1)]
    chosen.append(candelabra.ones(1))
    assert len(chosen) == 4 and len(list(iter(chosen))) == 4 and repr(nn.ParameterList()) == "ParameterList()"


@pytest.mark.host_only("texts without a device")
def test_parameter_dict():
    chosen = nn.ParameterDict({"a": candelabra.ones(2), "b": 3})
    assert (
        isinstance(chosen["a"], nn.Parameter) and chosen["b"] == 3 and list(chosen) == ["a", "b"] and len(chosen) == 2
    )
    assert chosen.get("z") is None and chosen.get("b") == 3 and "a" in chosen and list(reversed(chosen)) == ["b", "a"]
    assert chosen.setdefault("c", candelabra.ones(1)) is chosen["c"] and chosen.setdefault("c") is chosen["c"]
    other = chosen | nn.ParameterDict({"d": 1})
    assert list(other) == ["a", "b", "c", "d"] and "d" not in chosen
    chosen |= {"e": 5}
    assert chosen.popitem() == ("e", 5) and chosen.pop("b") == 3 and list(chosen.keys()) == ["a", "c"]
    assert list(chosen.fromkeys(["x"], 1).items()) == [("x", 1)] and [v.numel() for v in chosen.values()] == [2, 1]
    assert "(a): Parameter containing: [candelabra.float32 of size 2]" in repr(chosen)
    del chosen["a"]
    chosen.clear()
    assert len(chosen) == 0 and not list(chosen.parameters())


def test_names_of_a_plain_dict_are_sorted():
    one = candelabra.ones(1)
    assert list(nn.ParameterDict({"b": one, "a": one}).state_dict()) == ["a", "b"]
    assert list(nn.ParameterDict(OrderedDict(b=one, a=one)).state_dict()) == ["b", "a"]
    assert list(nn.ParameterDict([("b", one), ("a", one)]).state_dict()) == ["b", "a"]
