"""Functions that cannot be replayed as a whole: the modules that they call are replayed each."""

import copy
import pickle
import warnings

import pytest
from replays import is_replayed, same

import candelabra
from candelabra import nn, optim


def unit_of(module):
    """What replays the calls of a module beneath a refused function."""
    return module._compiled_unit._replayer


def is_unit_replayed(module):
    replayer = unit_of(module)
    programs = [*replayer.programs, *replayer.compiled.forwards.programs]
    return any(program.calls_left < 1000 for program in programs)


def call_quietly(compiled, *batches):
    """The results, and the messages of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [compiled(*arguments) for arguments in batches]
    return results, [str(one.message) for one in caught if "candelabra.compile" in str(one.message)]


class Reading(nn.Module):
    """Reads a value between two modules."""

    def __init__(self):
        super().__init__()
        self.before = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.after = nn.Linear(8, 2)

    def forward(self, x):
        y = self.before(x)
        return self.after(y * 2) if y.sum().item() > 1e6 else self.after(y)


def batches(count=8):
    return [(candelabra.randn(3, 4),) for _ in range(count)]


def test_modules_of_a_refused_function_are_replayed():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    head = nn.Linear(8, 2)

    def function(x):
        y = model(x)
        scale = 1 + int(y.max().item() > 0)
        return head(y) * scale

    compiled = candelabra.compile(function)
    given = batches()
    with candelabra.no_grad():
        results, messages = call_quietly(compiled, *given)
        assert same(results, [function(*arguments) for arguments in given])
    assert not compiled.programs
    assert is_unit_replayed(model)
    assert is_unit_replayed(head)
    # The parts of a replayed module are not replayed by themselves.
    assert not unit_of(model[0]).programs
    (message,) = messages
    assert "reads the value" in message
    assert __file__ in message
    assert "modules that it calls are replayed each" in message


def test_a_module_that_cannot_be_replayed_has_parts_that_can():
    inner = Reading()

    def function(x):
        print(end="")
        return inner(x)

    compiled = candelabra.compile(function)
    given = batches(12)
    with candelabra.no_grad():
        results, messages = call_quietly(compiled, *given)
        assert same(results, [function(*arguments) for arguments in given])
    assert not unit_of(inner).programs
    assert is_unit_replayed(inner.before)
    assert is_unit_replayed(inner.after)
    assert len(messages) == 1


def test_parts_of_a_compiled_module():
    model = Reading()
    compiled = candelabra.compile(model)
    given = batches(10)
    with candelabra.no_grad():
        results, messages = call_quietly(compiled, *given)
        assert same(results, [model(*arguments) for arguments in given])
    assert is_unit_replayed(model.before)
    assert is_unit_replayed(model.after)
    assert len(messages) == 1


def test_a_training_step_that_reads_its_loss():
    def make():
        candelabra.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        losses = []

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

        return model, step, losses

    model, step, losses = make()
    other, plain, expected = make()
    given = batches(12)
    call_quietly(candelabra.compile(step), *given)
    for arguments in given:
        plain(*arguments)
    assert losses == expected
    assert is_unit_replayed(model)
    assert all(map(candelabra.equal, model.parameters(), other.parameters()))


def test_only_calls_beneath_the_function_are_replayed():
    model = nn.Linear(4, 2)

    def function(x):
        return model(x) + x.sum().item()

    with candelabra.no_grad():
        call_quietly(candelabra.compile(function), *batches())
        left = [program.calls_left for program in unit_of(model).programs]
        assert left
        model(candelabra.randn(3, 4))
        assert [program.calls_left for program in unit_of(model).programs] == left


def test_state_of_modules_is_guarded():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))

    def function(x):
        return model(x) * x.numel() + x.sum().item()

    compiled = candelabra.compile(function)
    reference = copy.deepcopy(model)

    def plain(x):
        return reference(x) * x.numel() + x.sum().item()

    with candelabra.no_grad():
        for number, arguments in enumerate(batches(24)):
            if number == 8:
                model.eval(), reference.eval()
            if number == 16:
                model[0].weight.mul_(2), reference[0].weight.mul_(2)
                model[0].bias = reference[0].bias = nn.Parameter(candelabra.ones(4))
            state = candelabra.get_rng_state()
            (result,), _ = call_quietly(compiled, arguments)
            candelabra.set_rng_state(state)
            assert same(result, plain(*arguments)), number
    assert is_unit_replayed(model)
    assert model[2].running_mean.equal(reference[2].running_mean)


def test_hooks_are_called():
    model = nn.Linear(4, 2)
    seen = []

    def function(x):
        return model(x) + x.sum().item()

    compiled = candelabra.compile(function)
    with candelabra.no_grad():
        call_quietly(compiled, *batches())
        handle = model.register_forward_hook(lambda *arguments: seen.append(1))
        call_quietly(compiled, *batches(6))
        assert len(seen) == 6
        handle.remove()
        (result,), _ = call_quietly(compiled, (candelabra.ones(3, 4),))
        assert same(result, function(candelabra.ones(3, 4)))
        assert len(seen) == 6


def test_copies_of_modules_have_no_unit():
    model = Reading()
    with candelabra.no_grad():
        call_quietly(candelabra.compile(lambda x: model(x) + x.sum().item()), *batches())
        x = candelabra.randn(3, 4)
        for other in (
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model.before)),
            pickle.loads(pickle.dumps(model)),
        ):
            assert other._compiled_unit is None
        assert copy.deepcopy(model)(x).equal(model(x))
    assert list(model.state_dict()) == list(Reading().state_dict())


def test_an_exception_ends_the_search_for_modules():
    model = nn.Linear(4, 2)

    def function(x, fails):
        if fails:
            raise KeyError("x")
        return model(x) + x.sum().item()

    compiled = candelabra.compile(function)
    with candelabra.no_grad():
        call_quietly(compiled, *((x, False) for (x,) in batches()))
        with pytest.raises(KeyError):
            compiled(candelabra.randn(3, 4), True)
        left = [program.calls_left for program in unit_of(model).programs]
        model(candelabra.randn(3, 4))
        assert [program.calls_left for program in unit_of(model).programs] == left


def test_fullgraph_stays_an_error():
    model = nn.Linear(4, 2)

    @candelabra.compile(fullgraph=True)
    def function(x):
        return model(x) + x.sum().item()

    function(candelabra.randn(3, 4))
    with pytest.raises(RuntimeError, match="reads the value"):
        function(candelabra.randn(3, 4))
    assert "_compiled_unit" not in vars(model)


def test_other_compiled_functions_of_the_modules_go_on():
    model = nn.Linear(4, 2)
    whole = candelabra.compile(lambda x: model(x) * 2)
    with candelabra.no_grad():
        for arguments in batches(5):
            whole(*arguments)
        call_quietly(candelabra.compile(lambda x: model(x) + x.sum().item()), *batches())
        for arguments in batches(6):
            assert same(whole(*arguments), model(*arguments) * 2)
    assert is_replayed(whole)
