"""Gradients and calls of modules that need both candelabra-autograd and candelabra-nn."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import func, nn
from candelabra.nn import functional as F

NAN = float("nan")


def test_functional_call_replaces_plain_tensors_and_writes_buffers_back():
    call = candelabra.func.functional_call

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.factor = candelabra.ones(1), 3
            self.register_buffer("count", candelabra.zeros(1))
            self.register_buffer("shift", None)

        def forward(self, x):
            self.count = self.count + 1
            made = x * self.scale * getattr(self, "other", 1)
            return made if self.shift is None else made + self.shift

    module, x = Scaled(), candelabra.ones(1)
    three = candelabra.full((1,), 3.0)
    values = {"scale": three, "count": three, "shift": three, "other": three}
    assert call(module, values, x).tolist() == [12.0]
    assert values["count"].tolist() == [4.0]
    assert values["scale"] is three
    assert module.scale.tolist() == [1.0]
    assert module.count.tolist() == [0.0]
    assert module.shift is None
    assert not hasattr(module, "other")
    with pytest.raises(TypeError, match="attribute `factor`: 3 is not an instance"):
        call(module, {"scale": three, "factor": three}, x)
    assert module.scale.tolist() == [1.0]
    with pytest.raises(TypeError, match="2.0 is not an instance"):
        call(module, {"scale": 2.0}, x)


def test_tied_parameters_are_complete_for_strict_calls():
    call = candelabra.func.functional_call
    first = nn.Linear(2, 2, bias=False)
    second = nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    chain, x = nn.Sequential(first, second), candelabra.ones(1, 2)
    values = {"1.weight": candelabra.eye(2) * 3}
    assert call(chain, values, (x,), strict=True).tolist() == [[9.0, 9.0]]
    assert list(values) == ["1.weight"]
    with pytest.raises(RuntimeError, match="Missing key.*'0.weight'"):
        call(chain, values, (x,), strict=True, tie_weights=False)


@pytest.mark.parametrize(
    ("reduce", "values", "initial", "expected"),
    [
        ("max", [1.0, NAN, 2.0, 3.0, 3.0], None, [0, 1, 0, 1, 1]),
        ("max", [NAN, NAN, 1.0, 1.0, NAN], None, [0.5, 0.5, 0, 0, 2]),
        ("min", [NAN, NAN, 1.0, 1.0, NAN], None, [0.5, 0.5, 0, 0, 2]),
        ("min", [1.0, 2.0, 2.0, NAN, NAN], None, [1, 0, 0, 1, 1]),
        ("max", [1.0, 2.0, 2.0, 0.0, 1.0], 2.0, [0, 0.5, 0.5, 0, 0]),
        ("prod", [1.0, NAN, 2.0, 3.0, 3.0], None, [NAN, 2, NAN, 6, 6]),
        ("prod", [NAN, NAN, 1.0, 1.0, NAN], None, [NAN, NAN, NAN, NAN, 2]),
    ],
)
def test_gradients_of_segments_with_ties_and_nan(reduce, values, initial, expected):
    x = candelabra.tensor(values, requires_grad=True)
    lengths = candelabra.tensor([3, 2])
    made = candelabra.segment_reduce(x, reduce, lengths=lengths, initial=initial)
    plain = candelabra.segment_reduce(x.detach(), reduce, lengths=lengths, initial=initial)
    candelabra.testing.assert_close(made.detach(), plain, equal_nan=True, rtol=0, atol=0)
    made.backward(candelabra.tensor([1.0, 2.0]))
    candelabra.testing.assert_close(x.grad, candelabra.tensor(expected, dtype=x.dtype), equal_nan=True)


@pytest.mark.parametrize("dtype", [candelabra.bfloat16, candelabra.float16])
@pytest.mark.parametrize("normalize", [lambda *x: F.group_norm(x[0], 2, *x[1:]), lambda *x: F.instance_norm(x[0], None, None, *x[1:])])  # fmt: skip
def test_float_parameters_of_half_inputs_are_not_rounded(normalize, dtype):
    candelabra.manual_seed(0)
    x, grad = candelabra.randn(2, 4, 5, 5).to(dtype), candelabra.randn(2, 4, 5, 5).to(dtype)
    made, expected = ([candelabra.randn(4, generator=candelabra.Generator().manual_seed(i)).requires_grad_() for i in (1, 2)] for _ in range(2))  # fmt: skip
    result = normalize(x, *made)
    assert result.dtype is dtype
    result.backward(grad)
    reference = normalize(x.float(), *expected)
    reference.backward(grad.float())
    assert result.equal(reference.to(dtype))
    for one, other in zip(made, expected, strict=True):
        candelabra.testing.assert_close(one.grad, other.grad, rtol=0, atol=0)
    with candelabra.autocast("cpu", candelabra.bfloat16):
        assert normalize(x, *made).equal(result)


class _Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        made = self.layer(x)
        return {"text": "", "made": made, "inner": {"twice": made * 2}}


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_full_backward_hooks_of_results_in_a_dictionary_are_not_called(register):
    module, calls = _Named(), []
    getattr(module, register)(lambda *given: calls.append(given))
    x = candelabra.ones(1, 2, requires_grad=True)
    with pytest.warns(
        UserWarning, match="module output should be a Tensor or a tuple of Tensors but received <class 'dict'>"
    ):
        made = module(x)["made"]
    made.sum().backward()
    assert calls == []
    assert x.grad is not None


def test_backward_hooks_of_results_in_a_dictionary_watch_the_first_tensor():
    module, calls = _Named(), []
    module.register_backward_hook(
        lambda module, inputs, outputs: calls.append((len(inputs), [x.shape for x in outputs]))
    )
    with pytest.warns(FutureWarning, match="non-full backward hooks on a Module that does not return a single Tensor"):
        made = module(candelabra.ones(1, 2, requires_grad=True))["made"]
    made.sum().backward()
    assert calls == [(3, [(1, 2)])]


def test_calls_of_modules_that_contain_each_other():
    layer = nn.Linear(1, 1)
    outer = nn.Sequential(layer)
    layer.outer = outer
    values = {"0.outer.0.weight": candelabra.tensor([[2.0]]), "0.bias": candelabra.tensor([3.0])}
    made = func.functional_call(outer, values, candelabra.ones(1, 1), tie_weights=False)
    assert made.tolist() == [[5.0]]


def test_missing_names_are_sorted():
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias', 'weight'\."):
        func.functional_call(nn.Linear(1, 1), {}, candelabra.ones(1), strict=True)
