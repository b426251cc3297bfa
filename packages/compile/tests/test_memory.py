"""The memory of programs: when it begins and ends, what is reused, and what is computed again."""

import gc

import pytest
from replays import is_replayed, same

import candelabra
from candelabra import _C, backends, nn, optim

MIB = 1 << 20


def compiled(function, *arguments, debug=False):
    """The compiled function, after the calls that make its program."""
    made = candelabra.compile(function, fullgraph=True, options={"debug_memory": debug})
    for _ in range(3):
        made(*arguments)
    assert len(made.programs) == 1
    return made


def peak(function, *arguments):
    """The bytes that a call adds to those in use, at most."""
    gc.collect()
    before = backends.memory_statistics("cpu")["allocated"]
    _C.reset_peak_statistics("cpu")
    result = function(*arguments)
    return backends.memory_statistics("cpu")["allocated_peak"] - before, result


def operators(made):
    return [name for name, _, _ in made.programs[0].recording.instructions]


def test_large_memory_is_in_use_from_its_first_use_to_its_last():
    def function(x):
        for _ in range(6):
            x = (x.softmax(0) @ x).softmax(1)
        return x.sum()

    x = candelabra.randn(512, 512)
    made = compiled(function, x)
    expected = function(x)
    found, result = peak(made, x)
    assert result.equal(expected)
    assert found < 4 * MIB
    assert made.programs[0].unplanned_bytes >= 18 * MIB


def test_gradients_begin_where_they_are_computed():
    model = nn.Sequential(*(nn.Linear(512, 512, bias=False) for _ in range(6)))
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    x = candelabra.randn(1024, 512)

    def step():
        optimizer.zero_grad()
        model(x).softmax(1).square().mean().backward()
        optimizer.step()

    step()
    ordinary, _ = peak(step)
    made = compiled(step)
    replayed, _ = peak(made)
    assert is_replayed(made)
    assert replayed <= ordinary


def test_an_elementwise_result_takes_over_memory_that_ends():
    def function(x):
        return (x @ x).exp()

    x = candelabra.randn(600, 600) / 100
    made = compiled(function, x)
    found, result = peak(made, x)
    assert result.equal(function(x))
    assert found < 1.2 * x.nbytes
    # The result is a new tensor each time.
    assert not made(x).equal(result.zero_())


def test_memory_is_not_taken_over_while_others_read_it():
    def function(x):
        a = x @ x
        b = a.exp()
        c = a.t() + b  # of another layout
        return c * a

    x = candelabra.randn(256, 256) / 100
    made = compiled(function, x)
    assert made(x).equal(function(x))


@pytest.mark.parametrize("kind", ["gelu", "copy"])
def test_results_are_computed_again_where_that_lowers_the_peak(kind):
    def again(x):
        return nn.functional.gelu(x) if kind == "gelu" else x.t().contiguous()

    def function(x):
        layers = [x]
        for _ in range(4):
            layers.append((layers[-1] @ x) / 600)
        late = [again(layer) for layer in layers]
        total = late[0].softmax(0) @ late[1]
        for a, b in zip(late, layers, strict=True):
            total = total + (a @ b)
        return total

    x = candelabra.randn(600, 600)
    made = compiled(function, x)
    assert made.programs[0].size > len(operators(made))
    found, result = peak(made, x)
    assert result.equal(function(x))
    assert found < peak(function, x)[0]


def test_what_changes_meanwhile_is_not_computed_again():
    def function(x, y):
        doubled = x + x
        x.mul_(3)
        large = [(y @ y) + k for k in range(6)]
        total = large[0]
        for one in large[1:]:
            total = total @ one
        return doubled @ total, x

    def arguments():
        candelabra.manual_seed(1)
        return candelabra.randn(600, 600), candelabra.randn(600, 600) / 100

    made = candelabra.compile(function, fullgraph=True)
    for _ in range(5):
        assert same(made(*arguments()), function(*arguments()))
    assert is_replayed(made)


def test_results_that_nothing_uses_are_left_out():
    def function(x):
        (x * 2).exp()
        unused = candelabra.zeros(3)
        unused.copy_(x)
        return x + 1

    made = compiled(function, candelabra.ones(3))
    assert operators(made)[:2] == ["mul", "exp"]
    assert made.programs[0].size == 1
    assert made(candelabra.ones(3)).tolist() == [2, 2, 2]


def test_calls_that_may_fail_are_not_left_out():
    def function(x, y):
        x // y
        return x + 1

    one, zero = candelabra.tensor([1]), candelabra.tensor([0])
    made = compiled(function, one, one)
    for call in (function, made):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call(one, zero)


def test_values_of_the_host_are_written_where_their_memory_begins():
    def function(x):
        y = (x * 2).exp() + 1
        numbers = candelabra.tensor([float(k) for k in range(1024)])
        numbers.add_(y)
        return numbers * 1

    x = candelabra.randn(1024)
    made = compiled(function, x)
    assert made(x).equal(function(x))


def test_values_of_the_host_are_results():
    def function(x):
        return x + 1, candelabra.tensor([1.0, 2.0])

    made = compiled(function, candelabra.ones(2))
    first, second = made(candelabra.ones(2)), made(candelabra.ones(2))
    first[1].zero_()
    assert second[1].tolist() == [1, 2]


def test_a_debugged_program_gives_the_same_and_reuses_nothing():
    def function(x):
        for _ in range(4):
            x = nn.functional.gelu(x @ x).softmax(0)
        return x

    x = candelabra.randn(300, 300)
    made, debugged = compiled(function, x), compiled(function, x, debug=True)
    assert made(x).equal(debugged(x))
    assert debugged.programs[0].planned_bytes == debugged.programs[0].unplanned_bytes
    assert made.programs[0].planned_bytes < made.programs[0].unplanned_bytes / 3


def test_nothing_is_held_between_calls():
    def function(x):
        return (x @ x).softmax(0).sum()

    x = candelabra.randn(512, 512)
    made = compiled(function, x)
    gc.collect()
    before = backends.memory_statistics("cpu")["allocated"]
    result = made(x)
    assert backends.memory_statistics("cpu")["allocated"] - before < 4096
    assert result.equal(function(x))


def test_empty_results_have_memory_too():
    compiled = candelabra.compile(nn.BatchNorm1d(10, affine=False))
    for _ in range(5):
        x = candelabra.randn(5, 10, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        compiled(x).square().sum().backward()
        compiled._orig_mod(y).square().sum().backward()
        assert x.grad.equal(y.grad)
