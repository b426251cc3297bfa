"""Compiled modules: a node of the tape replays the backward pass."""

import copy
import pickle
import warnings

import numpy
import pytest
from replays import same

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F


def has_programs(function):
    compiled = getattr(function, "_compiled_call", function).compiled
    return any(program.calls_left < 1000 for program in compiled.forwards.programs)


def network():
    return nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(16), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)
    )


def train(model, function, steps=12, accumulate=1):
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    losses = []
    for number in range(steps):
        loss = F.cross_entropy(function(candelabra.randn(5, 6)), candelabra.randint(0, 4, (5,)))
        loss.backward()
        if number % accumulate == accumulate - 1:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        losses.append(loss.detach())
    return losses, list(model.state_dict().values())


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_training(accumulate, debug):
    candelabra.manual_seed(1)
    expected_model = network()
    expected = train(expected_model, expected_model, accumulate=accumulate)
    candelabra.manual_seed(1)
    model = network()
    compiled = candelabra.compile(model, options={"debug_memory": debug})
    assert same(train(model, compiled, accumulate=accumulate), expected)
    assert has_programs(compiled)


def test_a_convolutional_network():
    def build():
        candelabra.manual_seed(1)
        return nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2)
        )

    a, b = build(), build()
    compiled = candelabra.compile(b)
    for _ in range(8):
        x, y = candelabra.randn(4, 1, 8, 8), candelabra.randint(0, 2, (4,))
        for model, function in ((a, a), (b, compiled)):
            model.zero_grad()
            F.cross_entropy(function(x), y).backward()
        assert all(p.grad.equal(q.grad) for p, q in zip(a.parameters(), b.parameters(), strict=True))
        assert all(p.equal(q) for p, q in zip(a.buffers(), b.buffers(), strict=True))
    assert has_programs(compiled)


def test_training_and_evaluation_in_turn():
    model = network()
    compiled = candelabra.compile(model)
    for number in range(24):
        compiled.train(number % 6 < 4)
        assert model.training == (number % 6 < 4)
        x = candelabra.randn(5, 6)
        state, buffers = candelabra.get_rng_state(), copy.deepcopy(model)
        if model.training:
            computed = compiled(x)
            computed.sum().backward()
        else:
            with candelabra.no_grad():
                computed = compiled(x)
        candelabra.set_rng_state(state)
        assert computed.equal(buffers(x))
    assert has_programs(compiled)
    assert compiled._compiled_call.programs


def test_gradients_of_arguments():
    weight = candelabra.randn(3, 3, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x @ weight).tanh() * x)
    for _ in range(8):
        x = candelabra.randn(2, 3, requires_grad=True)
        compiled(x).sum().backward()
        found, x.grad = x.grad, None
        weight_found, weight.grad = weight.grad, None
        ((x @ weight).tanh() * x).sum().backward()
        assert found.equal(x.grad)
        assert weight_found.equal(weight.grad)
        weight.grad = None
    assert has_programs(compiled)


def test_results_in_containers():
    weight = candelabra.randn(3, requires_grad=True)

    def function(x):
        return {"out": x * weight, "shape": tuple(x.shape), "x": x}

    compiled = candelabra.compile(function)
    for _ in range(8):
        x = candelabra.randn(3)
        result = compiled(x)
        assert list(result) == ["out", "shape", "x"]
        assert result["x"] is x
        weight.grad = None
        result["out"].sum().backward()
        assert weight.grad.equal(x)
    assert has_programs(compiled)


def test_several_results_with_graphs_run_as_written():
    weight = candelabra.randn(3, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x * weight, x + weight))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(8):
            a, b = compiled(candelabra.ones(3))
            weight.grad = None
            (a.sum() + 2 * b.sum()).backward()
            assert weight.grad.tolist() == [3.0, 3.0, 3.0]
    assert any("several results require grad" in str(one.message) for one in caught)


def ready(function, *arguments):
    for _ in range(6):
        function(*arguments).sum().backward()
    assert has_programs(function)


def test_a_backward_pass_may_run_twice_if_the_graph_is_kept():
    weight = candelabra.ones(3, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x * weight).exp())
    ready(compiled, candelabra.ones(3))
    weight.grad = None
    loss = compiled(candelabra.zeros(3)).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert weight.grad.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


def test_second_derivatives_are_refused():
    weight = candelabra.ones(3, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x * weight).exp())
    ready(compiled, candelabra.ones(3))
    with pytest.raises(RuntimeError, match="create_graph=True"):
        candelabra.autograd.grad(compiled(candelabra.ones(3)).sum(), weight, create_graph=True)


def test_a_parameter_changed_between_the_passes_is_an_error():
    weight = candelabra.ones(3, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x * weight).exp() * weight)
    ready(compiled, candelabra.ones(3))
    result = compiled(candelabra.ones(3))
    with candelabra.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_result_changed_in_place():
    model = nn.Linear(3, 2)
    compiled = candelabra.compile(model)
    ready(compiled, candelabra.ones(1, 3))
    model.zero_grad()
    result = compiled(candelabra.ones(1, 3))
    result.mul_(3)
    result.sum().backward()
    assert model.bias.grad.tolist() == [3.0, 3.0]


def test_several_calls_before_their_backward_passes():
    weight = candelabra.randn(3, requires_grad=True)

    def function(x):
        return (x * weight).exp()

    compiled = candelabra.compile(function)
    ready(compiled, candelabra.ones(3))
    xs = [candelabra.randn(3) for _ in range(4)]
    weight.grad = None
    candelabra.stack([compiled(x) for x in xs]).sum().backward()
    found, weight.grad = weight.grad, None
    candelabra.stack([function(x) for x in xs]).sum().backward()
    assert found.equal(weight.grad)


def test_without_a_backward_pass_calls_run_as_written():
    model = nn.Linear(3, 2)
    compiled = candelabra.compile(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(10):
            x = candelabra.randn(2, 3)
            assert compiled(x).equal(model(x))
    assert len([one for one in caught if "no backward pass" in str(one.message)]) == 1


def test_gradients_of_any_layout():
    weight = candelabra.randn(3, 4, requires_grad=True)
    compiled = candelabra.compile(lambda x: x * weight)
    ready(compiled, candelabra.ones(3, 4))
    x = candelabra.randn(3, 4)
    for gradient in (candelabra.randn(4, 3).t(), candelabra.ones(1).expand(3, 4), candelabra.randn(3, 4)):
        weight.grad = None
        compiled(x).backward(gradient)
        assert weight.grad.equal(x * gradient)


def test_a_result_as_its_own_gradient():
    weight = candelabra.randn(3, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x * weight).tanh())
    ready(compiled, candelabra.ones(3))
    x = candelabra.randn(3)
    for function in (compiled, lambda x: (x * weight).tanh()):
        weight.grad = None
        y = function(x)
        y.backward(y.detach())
        if function is compiled:
            found = weight.grad
    assert found.equal(weight.grad)


def test_new_hooks_of_parameters_are_called():
    model = nn.Linear(3, 2)
    compiled = candelabra.compile(model)
    ready(compiled, candelabra.ones(1, 3))
    calls = []
    model.weight.register_hook(lambda grad: calls.append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            compiled(candelabra.ones(1, 3)).sum().backward()
    assert len(calls) == 6


def test_a_compiled_module_inside_a_compiled_step():
    model = nn.Linear(3, 1)
    inner = candelabra.compile(model)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = inner(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    compiled = candelabra.compile(step)
    twin = copy.deepcopy(model)
    twin_optimizer = optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(8):
        x = candelabra.randn(2, 3)
        compiled(x)
        twin_optimizer.zero_grad()
        twin(x).square().sum().backward()
        twin_optimizer.step()
    assert compiled.programs
    assert twin.weight.equal(model.weight)


def test_attributes_state_and_pickling():
    model = nn.Linear(3, 2)
    compiled = candelabra.compile(model)
    assert compiled.weight is model.weight
    assert compiled.out_features == 2
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = compiled.nothing
    again = pickle.loads(pickle.dumps(compiled))
    x = candelabra.randn(2, 3)
    assert again(x).equal(model(x))
    assert copy.deepcopy(compiled)(x).equal(model(x))


def allocated():
    return candelabra.backends.memory_statistics("cpu")["allocated"]


def test_memory_of_a_graph_is_given_up_with_its_result():
    weight = candelabra.ones(1000, requires_grad=True)
    compiled = candelabra.compile(lambda x: (x * weight).exp().sum())
    ready(compiled, candelabra.ones(1000))
    before = allocated()
    result = compiled(candelabra.ones(1000))
    assert allocated() >= before + 4000
    del result
    assert allocated() <= before


def test_a_thousand_calls_later_the_passes_are_recorded_again():
    weight = candelabra.ones(3, requires_grad=True)
    # No guard sees the state of an extension.
    before = numpy.getbufsize()
    compiled = candelabra.compile(lambda x: x * weight * (1 if numpy.getbufsize() == before else 2))
    for _ in range(5):
        compiled(candelabra.ones(3)).sum().backward()
    (program,) = compiled.compiled.forwards.programs
    numpy.setbufsize(2 * before)
    program.calls_left = 0
    weight.grad = None
    try:
        with pytest.warns(UserWarning, match="argument 'other' of mul"):
            compiled(candelabra.ones(3)).sum().backward()
    finally:
        numpy.setbufsize(before)
    assert weight.grad.tolist() == [2.0, 2.0, 2.0]
