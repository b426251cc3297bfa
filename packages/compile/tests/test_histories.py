"""Arguments that are results of earlier operations, whose gradients go on into their graphs."""

import copy
import warnings
import weakref

import pytest
from replays import is_replayed, refusal

import candelabra
from candelabra import nn

WEIGHT = candelabra.arange(1.0, 4.0).requires_grad_()


def programs_of(function):
    return getattr(function, "_compiled_call", function).compiled.forwards.programs


USES = {
    "chain": lambda parts, x: parts[2](parts[1](parts[0](x))),
    "one part twice": lambda parts, x: parts[0](parts[0](x)),
    "one part three times": lambda parts, x: parts[0](parts[0](parts[0](x))),
    "residual": lambda parts, x: (lambda h: h + parts[1](h))(parts[0](x)),
    "several results of one node": lambda parts, x: (lambda a, b: parts[1](a) + parts[2](b))(
        *parts[0](candelabra.cat([x, x])).chunk(2)
    ),
    "operators between": lambda parts, x: parts[1](parts[0](x).relu() * 2),
    "a view": lambda parts, x: parts[1](parts[0](x).view(5, 3)),
    "several calls before the backward pass": lambda parts, x: sum(parts[1](parts[0](x * n)) for n in range(3)),
}


@pytest.mark.parametrize("name", USES)
def test_modules_in_a_row(name):
    candelabra.manual_seed(0)
    parts = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.3), nn.Tanh()) for _ in range(3)])
    others = copy.deepcopy(parts)
    compiled = [candelabra.compile(part) for part in parts]
    for number in range(14):
        x, state = candelabra.randn(5, 3), candelabra.get_rng_state()
        results = []
        for called, modules in ((compiled, parts), (list(others), others)):
            candelabra.set_rng_state(state)
            modules.zero_grad()
            result = USES[name](called, x)
            result.sum().backward()
            results.append(result.detach())
        assert results[0].equal(results[1]), number
        for one, other in zip(parts.parameters(), others.parameters(), strict=True):
            assert (one.grad is None and other.grad is None) or one.grad.equal(other.grad), number
    assert programs_of(compiled[0])
    if "twice" not in name and "three" not in name:
        assert programs_of(compiled[1])


def gradient(function, make):
    WEIGHT.grad = None
    function(*make(WEIGHT)).sum().backward()
    return WEIGHT.grad


def agrees(function, make, calls=10):
    compiled = candelabra.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(calls):
            assert gradient(compiled, make).equal(gradient(function, make))
    return compiled


def test_an_argument_that_another_depends_on():
    def make(weight):
        a = weight * 2
        return a, a.sin()

    assert programs_of(agrees(lambda a, b: (a * b + WEIGHT) * 3, make))


def test_an_argument_given_twice():
    assert programs_of(agrees(lambda a, b: a * b, lambda weight: (lambda h: (h, h))(weight * 2)))


def test_an_argument_that_changes_in_place_runs_as_written():
    assert not programs_of(agrees(lambda a: a.mul_(2) + 1, lambda weight: (weight * 1,)))


def test_without_gradients_a_history_does_not_matter():
    def function(a):
        with candelabra.no_grad():
            return a * 2

    compiled = candelabra.compile(function)
    for _ in range(6):
        assert compiled(WEIGHT * 3).equal(WEIGHT.detach() * 6)
    assert is_replayed(compiled)


def test_a_backward_pass_inside_that_goes_on_outside_is_refused():
    def function(a):
        loss = (a * a).sum()
        loss.backward()
        return loss.detach()

    message = refusal(function, *[(WEIGHT * 1,) for _ in range(6)])
    assert "goes on into the graph of an argument" in message
    WEIGHT.grad = None
    candelabra.compile(function)(WEIGHT * 1)
    assert WEIGHT.grad.equal(2 * WEIGHT.detach())


def test_gradients_of_an_argument_inside():
    compiled = candelabra.compile(lambda a: candelabra.autograd.grad((a * a).sum(), a)[0])
    for _ in range(6):
        assert compiled(WEIGHT * 1).equal(2 * WEIGHT.detach())
    assert is_replayed(compiled)


def test_hooks_and_kept_gradients_of_an_argument():
    compiled = candelabra.compile(lambda a: a * WEIGHT)
    for _ in range(8):
        a, seen = WEIGHT * 3, []
        a.retain_grad()
        a.register_hook(seen.append)
        compiled(a).sum().backward()
        assert a.grad.equal(WEIGHT.detach())
        assert len(seen) == 1
    assert programs_of(compiled)


def test_the_graph_of_an_argument_is_given_up():
    compiled = candelabra.compile(lambda a: a * WEIGHT)
    for _ in range(8):
        a = WEIGHT * 3
        node = weakref.ref(a.grad_fn)
        compiled(a).sum().backward()
        del a
    assert node() is None
