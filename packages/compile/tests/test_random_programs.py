"""Random programs: compiled, they compute what they compute as written."""

import random

import pytest
from replays import is_replayed, same

import candelabra
from candelabra.nn import functional as F

UNARY = [
    lambda x: x.sin(),
    lambda x: x.relu(),
    lambda x: x * 0.5 + 1,
    lambda x: x.abs().sqrt(),
    lambda x: x.t(),
    lambda x: x[1:].sum(0, keepdim=True) + x,
    lambda x: x.flip(0),
    lambda x: x.softmax(1),
    lambda x: x.to(candelabra.float64).exp().clamp(max=3).to(candelabra.float32),
    lambda x: F.layer_norm(x, (4,)),
    lambda x: F.dropout(x, 0.3),
    lambda x: x.cumsum(1) - x.mean(),
    lambda x: candelabra.where(x > 0, x, candelabra.zeros(4, 4)),
    lambda x: x.reshape(2, 8).contiguous().view(4, 4),
    lambda x: x.argsort(1).to(candelabra.float32),
    lambda x: x + candelabra.arange(4),
    lambda x: x.expand(3, 4, 4).amax(0),
    lambda x: candelabra.cat([x[:2], x[2:]]),
    lambda x: x + candelabra.tensor([[1.0, 2.0, 3.0, 4.0]]),
]
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x @ y * 0.1,
    lambda x, y: candelabra.maximum(x, y),
    lambda x, y: candelabra.lerp(x, y, 0.25),
    lambda x, y: candelabra.stack([x, y]).mean(0),
    lambda x, y: x.addmm(x, y, alpha=0.1),
]
IN_PLACE = [
    lambda x, y: x.add_(y),
    lambda x, y: x.mul_(0.9),
    lambda x, y: x[0].fill_(0.5),
    lambda x, y: x[:, 1].copy_(y[:, 2]),
    lambda x, y: x.clamp_(-2, 2),
    lambda x, y: x.t().sub_(y),
]


def program_of(seed, changes_arguments, kinds=("unary", "unary", "binary", "binary", "in place")):
    """A function of two matrices: a list of operators on a growing list of values."""
    choose = random.Random(seed)
    steps = []
    for _ in range(choose.randint(5, 25)):
        kind = choose.choice(kinds)
        table = {"unary": UNARY, "binary": BINARY, "in place": IN_PLACE}[kind]
        steps.append((kind, choose.choice(table), choose.random(), choose.random()))
    returned = [choose.random() for _ in range(choose.randint(1, 3))]

    def function(x, y):
        values = [x, y] if changes_arguments else [x.clone(), y.clone()]
        for kind, operator, first, second in steps:
            a, b = values[int(first * len(values))], values[int(second * len(values))]
            if kind == "unary":
                values.append(operator(a))
            elif kind == "binary":
                values.append(operator(a, b))
            elif a is not b and a.untyped_storage()._cdata != b.untyped_storage()._cdata and 0 not in a.stride():
                operator(a, b)
        return tuple(values[int(place * len(values))] for place in returned)

    return function


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("changes_arguments", [False, True])
@pytest.mark.parametrize("block", range(5))
def test_programs(block, changes_arguments, debug):
    for seed in range(10 * block, 10 * block + 10):
        function = program_of(seed, changes_arguments)
        compiled = candelabra.compile(function, options={"debug_memory": debug}, fullgraph=True)
        for call in range(6):
            x, y = candelabra.randn(4, 4), candelabra.randn(4, 4)
            copies = x.clone(), y.clone()
            state = candelabra.get_rng_state()
            computed = compiled(x, y)
            candelabra.set_rng_state(state)
            expected = function(*copies)
            assert same(computed, expected), (seed, call)
            assert same((x, y), copies), (seed, call)
        assert is_replayed(compiled), seed


@pytest.mark.parametrize("block", range(3))
def test_gradients(block):
    for seed in range(100 + 8 * block, 108 + 8 * block):
        function = program_of(seed, False, ("unary", "binary"))
        weight = candelabra.randn(4, 4, requires_grad=True)

        def step(x, function=function, weight=weight):
            weight.grad = None
            loss = sum(result.square().mean() for result in function(x, weight.tanh() * 2) if result.requires_grad)
            if isinstance(loss, candelabra.Tensor):
                loss.backward()
            return loss

        compiled = candelabra.compile(step)
        for call in range(6):
            x = candelabra.randn(4, 4)
            state = candelabra.get_rng_state()
            computed, grad = compiled(x), weight.grad
            candelabra.set_rng_state(state)
            expected = step(x)
            assert same(computed, expected) or not candelabra.isfinite(expected), (seed, call)
            assert (grad is None and weight.grad is None) or grad.equal(weight.grad) or grad.isnan().any(), (seed, call)
        assert compiled.programs, seed
