"""Test pruning: which elements are removed, what is stored, and how masks combine."""

import copy

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn
from candelabra.nn.utils import prune


@pytest.fixture
def layer(rng):
    made = nn.Linear(4, 3, dtype=candelabra.float64)
    with candelabra.no_grad():
        made.weight.copy_(tensor(rng.permutation(12).reshape(3, 4) + 1.0))
    return made


def test_l1(layer):
    before = array(layer.weight).copy()
    assert prune.l1_unstructured(layer, "weight", amount=0.25) is layer
    assert_close(layer.weight, np.where(before > 3, before, 0))
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"] and prune.is_pruned(nn.Sequential(layer))
    # Prune two more of the nine remaining elements.
    prune.l1_unstructured(layer, "weight", amount=2)
    assert_close(layer.weight, np.where(before > 5, before, 0))
    (hook,) = layer._forward_pre_hooks.values()
    assert (
        isinstance(hook, prune.PruningContainer)
        and len(hook) == 2
        and [type(m) for m in hook] == [prune.L1Unstructured] * 2
    )
    assert isinstance(hook[0], prune.L1Unstructured)
    # Masked elements stay zero when the original changes.
    with candelabra.no_grad():
        layer.weight_orig.fill_(1)
    layer(candelabra.ones(1, 4, dtype=candelabra.float64))
    assert_close(layer.weight, (before > 5).astype(float))
    parameter = layer.weight_orig
    prune.remove(layer, "weight")
    assert layer.weight is parameter and list(layer.state_dict()) == ["bias", "weight"] and not prune.is_pruned(layer)
    assert_close(layer.weight, (before > 5).astype(float))


@pytest.mark.parametrize("n", [1, 2, float("inf")])
def test_ln_structured(layer, n):
    before = array(layer.weight).copy()
    prune.ln_structured(layer, "weight", amount=1, n=n, dim=0)
    rows = np.linalg.norm(before, n, axis=1)
    expected = np.where((rows > rows.min())[:, None], before, 0)
    assert_close(layer.weight, expected)
    # A second pruning considers the remaining rows and removes columns.
    prune.ln_structured(layer, "weight", amount=0.5, n=n, dim=-1)
    columns = np.linalg.norm(expected[rows > rows.min()], n, axis=0)
    assert_close(layer.weight, np.where(columns >= np.sort(columns)[2], expected, 0))


def test_random(layer):
    prune.random_unstructured(layer, "weight", amount=5)
    assert int((layer.weight_mask == 0).sum()) == 5
    prune.identity(layer, "bias")
    assert_close(layer.bias_mask, np.ones(3))
    conv = prune.random_structured(nn.Conv1d(4, 6, 3), "weight", amount=2, dim=1)
    zeros = array(conv.weight_mask.sum([0, 2])) == 0
    assert zeros.sum() == 2


def test_global_and_custom(rng):
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    values = rng.permutation(10) + 1.0
    with candelabra.no_grad():
        net[0].weight.copy_(tensor(values[:6].reshape(2, 3)))
        net[1].weight.copy_(tensor(values[6:].reshape(2, 2)))
    pairs = [(net[0], "weight"), (net[1], "weight")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=4)
    found = np.concatenate([array(m.weight).ravel() for m, _ in pairs])
    np.testing.assert_array_equal(found, np.where(values > 4, values, 0))
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.5)
    found = np.concatenate([array(m.weight).ravel() for m, _ in pairs])
    np.testing.assert_array_equal(found, np.where(values > 7, values, 0))
    scores = {(net[1], "bias"): candelabra.tensor([2.0, 1.0])}
    prune.global_unstructured([(net[1], "bias")], prune.L1Unstructured, importance_scores=scores, amount=1)
    assert net[1].bias_mask.tolist() == [1.0, 0.0]
    prune.custom_from_mask(net[0], "bias", candelabra.tensor([0.0, 1.0]))
    assert float(net[0].bias[0]) == 0
    with pytest.raises(AssertionError, match="must match self.mask shape"):
        prune.custom_from_mask(net[0], "bias", candelabra.ones(3))


def test_scores_and_functional_use(layer):
    scores = candelabra.arange(12.0).reshape(3, 4)
    prune.l1_unstructured(layer, "weight", 3, importance_scores=scores)
    assert layer.weight_mask.flatten().tolist() == [0.0] * 3 + [1.0] * 9
    assert prune.L1Unstructured(2).prune(candelabra.tensor([3.0, -1.0, 2.0, -4.0])).tolist() == [3.0, 0.0, 0.0, -4.0]
    assert prune.L1Unstructured(1).prune(
        candelabra.tensor([3.0, 1.0]), importance_scores=candelabra.tensor([0.0, 1.0])
    ).tolist() == [0.0, 1.0]
    with pytest.raises(AssertionError, match="importance_scores should have the same shape as tensor t"):
        prune.L1Unstructured(1).prune(candelabra.ones(2), importance_scores=candelabra.ones(3))


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def test_own_method(layer):
    EveryOther.apply(layer, "weight")
    assert layer.weight_mask.flatten().tolist() == [0.0, 1.0] * 6
    EveryOther.apply(layer, "weight")
    assert int(layer.weight_mask.sum()) == 3
    EveryOther.PRUNING_TYPE = "sideways"
    try:
        with pytest.raises(ValueError, match="Unrecognized PRUNING_TYPE sideways"):
            EveryOther.apply(layer, "weight")
    finally:
        EveryOther.PRUNING_TYPE = "unstructured"


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: prune.remove(m, "weight"), ValueError, "has to be pruned before pruning can be removed"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "amount=-1 should either be a float in the range [0, 1]"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount=1.5 should either be a float in the range"),
        (lambda m: prune.l1_unstructured(m, "weight", "a"), TypeError, "Invalid type for amount: a. Must be int or float."),
        (lambda m: prune.l1_unstructured(m, "weight", 13), ValueError, "amount=13 should be smaller than the number of parameters to prune=12"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "Structured pruning can only be applied to multidimensional"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "Invalid index 2 for tensor of size"),
        (lambda m: prune.global_unstructured(3, prune.L1Unstructured), TypeError, "parameters is not an Iterable"),
        (lambda m: prune.global_unstructured([], prune.L1Unstructured, 3), TypeError, "importance_scores must be of type dict"),
        (lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=1), TypeError, 'Only "unstructured" PRUNING_TYPE'),
        (lambda m: prune.PruningContainer(prune.L1Unstructured(1)), AttributeError, "_tensor_name"),
    ],
)  # fmt: skip
def test_errors(layer, act, error, text):
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(error) as caught:
        act(layer)
    assert text in str(caught.value)
    assert list(layer.state_dict()) == list(before) and candelabra.equal(layer.weight, before["weight"])
