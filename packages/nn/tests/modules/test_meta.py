"""Modules on the device meta: made without memory, then given some."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import nn


def model():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))


def test_made_without_memory():
    with candelabra.device("meta"):
        made = model()
    assert all(t.is_meta for t in (*made.parameters(), *made.buffers()))
    assert made(candelabra.ones(2, 3, 8, 8, device="meta")).shape == (2, 5)


def test_to_empty():
    made = model().to("meta").to_empty(device="cpu")
    assert not any(t.is_meta for t in (*made.parameters(), *made.buffers()))
    made.load_state_dict(model().state_dict())
    assert made(candelabra.ones(2, 3, 8, 8, device="cpu")).shape == (2, 5)


def test_to_needs_data():
    with pytest.raises(NotImplementedError, match="no data! Please use candelabra.nn.Module.to_empty"):
        nn.Linear(2, 3, device="meta").to("cpu")


def test_load_state_dict_assigns():
    state = model().state_dict()
    made = model().to("meta")
    made.load_state_dict(state, assign=True)
    assert made[0].weight.data_ptr() == state["0.weight"].data_ptr()
    assert isinstance(made[0].weight, nn.Parameter)
    assert made[0].weight.requires_grad


def test_load_state_dict_without_assign_is_a_no_op():
    made = nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op. \\(Did you mean to pass `assign=True`"):
        made.load_state_dict(nn.Linear(2, 3).state_dict())
    assert made.weight.is_meta


@pytest.mark.parametrize(
    "call",
    [
        lambda t: nn.functional.binary_cross_entropy(t, t),
        lambda t: nn.functional.gaussian_nll_loss(t, t, t),
        lambda t: nn.functional.multilabel_margin_loss(t, t.long()),
        lambda t: nn.functional.one_hot(t[0].long(), 4),
        lambda t: nn.functional.max_unpool1d(*nn.functional.max_pool1d(t, 2, return_indices=True), 2),
    ],
)
def test_functions_that_check_values(call):
    t = candelabra.tensor([[0.0, 0.5, 1.0, 1.0]])
    expected, found = call(t), call(t.to("meta"))
    assert (found.shape, found.dtype, found.is_meta) == (expected.shape, expected.dtype, True)


@pytest.mark.parametrize(("start", "end"), [("cpu", "meta"), ("meta", "cpu")])
def test_a_parameter_that_gets_memory_is_another_object(start, end):
    made = nn.Linear(2, 3, device=start)
    before = dict(made.named_parameters())
    made.to_empty(device=end)
    for name, parameter in made.named_parameters():
        assert isinstance(parameter, nn.Parameter)
        assert parameter is not before[name]
        assert parameter.is_meta == (end == "meta")
