"""Test fast paths: plain calls go straight to the operator, other calls to the Python function."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import candelabra
from candelabra import nn
from candelabra.nn import functional as F

FRONTS = [F.conv1d, F.conv2d, F.conv3d, F.cross_entropy, F.layer_norm, F.log_softmax, F.softmax]


@pytest.mark.parametrize("function", FRONTS, ids=lambda function: function.__name__)
def test_is_a_function_to_others(function) -> None:
    assert next(iter(inspect.signature(function).parameters)) == "input"
    assert function.__doc__ and function.__module__.startswith("candelabra.nn.functional")
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function
    assert function.__name__ in repr(function)
    with pytest.raises(TypeError, match="input"):
        function()
    with pytest.raises(TypeError, match="banana"):
        function(candelabra.ones(2, 3), 1, banana=1)


def test_binds_like_a_function() -> None:
    class Wrapped(candelabra.Tensor):
        normalized = F.layer_norm

    x = candelabra.tensor([[1.0, 3.0]]).as_subclass(Wrapped)
    assert x.normalized((2,)).tolist() == F.layer_norm(candelabra.tensor([[1.0, 3.0]]), (2,)).tolist()


def entropy(x: np.ndarray, target: np.ndarray) -> np.ndarray:
    shifted = x - x.max(-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -np.take_along_axis(logarithms, target[:, None], 1)[:, 0]


def test_every_spelling_of_cross_entropy_says_the_same(rng) -> None:
    x, t = rng.normal(size=(5, 4)), rng.integers(0, 4, 5)
    each = entropy(x, t)
    scores, target, weight = candelabra.tensor(x), candelabra.tensor(t), candelabra.ones(4, dtype=candelabra.float64)
    mean, total = pytest.approx(each.mean(), rel=1e-12), pytest.approx(each.sum(), rel=1e-12)
    assert F.cross_entropy(scores, target).item() == mean
    assert F.cross_entropy(input=scores, target=target).item() == mean
    assert F.cross_entropy(scores, target, weight).item() == mean
    assert F.cross_entropy(scores, target, None, None, -100, None, "sum").item() == total
    assert F.cross_entropy(scores, target, reduction="sum").item() == total
    assert F.cross_entropy(scores[0], target[0]).item() == pytest.approx(each[0], rel=1e-12)
    assert F.cross_entropy(scores.t().contiguous()[None], target[None], label_smoothing=0.0).item() == mean
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.cross_entropy(scores, target, size_average=False).item() == total
    exact = F.one_hot(target, 4).double()
    assert F.cross_entropy(scores, exact).item() == mean
    assert nn.CrossEntropyLoss()(scores, target).item() == mean
    np.testing.assert_allclose(nn.CrossEntropyLoss(reduction="none")(scores, target).numpy(), each, rtol=1e-12)
    smooth = nn.CrossEntropyLoss(label_smoothing=0.1)(scores, target).item()
    assert smooth == pytest.approx(F.cross_entropy(scores, 0.9 * exact + 0.025).item(), rel=1e-12)


def test_refusals_are_those_of_the_function() -> None:
    x, target = candelabra.ones(2, 3), candelabra.zeros(2, dtype=candelabra.int64)
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(3\)"):
        F.cross_entropy(x, candelabra.zeros(3, dtype=candelabra.int64))
    with pytest.raises(ValueError, match="median is not a valid value for reduction"):
        F.cross_entropy(x, target, reduction="median")
    with pytest.raises(RuntimeError, match="label_smoothing must be between"):
        F.cross_entropy(x, target, label_smoothing=2.0)
    with pytest.raises(RuntimeError, match="Expected 3D"):
        F.conv2d(candelabra.ones(2), candelabra.ones(1, 1, 1, 1))
    with pytest.raises(RuntimeError, match="stride to be a single integer value or a list of 2 values"):
        F.conv2d(candelabra.ones(1, 1, 3, 3), candelabra.ones(1, 1, 2, 2), stride=(1, 2, 3))


def test_only_the_first_result_is_returned_recorded_or_not() -> None:
    x = candelabra.tensor([[1.0, 3.0], [0.0, 4.0]], requires_grad=True)
    made = F.layer_norm(x, (2,))
    assert isinstance(made, candelabra.Tensor) and made.shape == x.shape
    with candelabra.no_grad():
        np.testing.assert_array_equal(F.layer_norm(x, (2,)).numpy(), made.detach().numpy())
    wide = candelabra.ones(500, 2)  # too many rows to store their statistics with the call
    np.testing.assert_array_equal(F.layer_norm(wide, (2,)).numpy(), np.zeros((500, 2), "float32"))


def test_what_requires_gradients_goes_the_way_of_all_else() -> None:
    # With and without grad mode, a composite with a kernel is not decomposed.
    x = candelabra.arange(96.0).reshape(2, 3, 4, 4).contiguous(memory_format=candelabra.channels_last)
    plain, given = F.interpolate(x, scale_factor=2), F.interpolate(x.clone().requires_grad_(), scale_factor=2)
    assert given.stride() == plain.stride() == (192, 1, 24, 3)
    np.testing.assert_array_equal(given.detach().numpy(), plain.numpy())


def test_convolutions_take_every_form() -> None:
    x, w = candelabra.arange(9.0).reshape(1, 1, 3, 3), candelabra.ones(1, 1, 2, 2)
    plain = F.conv2d(x, w)
    assert plain.tolist() == [[[[8.0, 12.0], [20.0, 24.0]]]]
    for form in (
        F.conv2d(x, w, None, 1, 0, 1, 1),
        F.conv2d(x, w, stride=(1,), padding=[0, 0]),
        F.conv2d(x, w, padding="valid"),
    ):
        assert form.tolist() == plain.tolist()
    assert F.conv2d(x[0], w).tolist() == plain[0].tolist()
    assert F.conv2d(x, w, padding="same").shape == (1, 1, 3, 3)
    assert nn.Conv2d(1, 1, 2, padding_mode="circular", padding=1)(x).shape == (1, 1, 4, 4)


def test_gradients_are_cleared_below_a_module() -> None:
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.Sequential(shared, nn.Linear(2, 1)), nn.ReLU())
    model.register_parameter("none", None)

    def give_gradients() -> None:
        for parameter in model.parameters():
            parameter.grad = candelabra.ones_like(parameter)

    give_gradients()
    model.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())
    give_gradients()
    model.zero_grad(set_to_none=False)
    assert all(not parameter.grad.any() for parameter in model.parameters())


def test_a_module_that_says_what_is_below_it_is_asked() -> None:
    class Apart(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen, self.unseen = nn.Linear(1, 1), nn.Linear(1, 1)

        def named_modules(self, *arguments, **keywords):
            yield "seen", self.seen

    model = nn.Sequential(Apart())
    for parameter in (model[0].seen.weight, model[0].unseen.weight):
        parameter.grad = candelabra.ones(1, 1)
    model.zero_grad()
    assert model[0].seen.weight.grad is None
    assert model[0].unseen.weight.grad is not None
