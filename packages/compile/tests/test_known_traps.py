"""What recording systems get silently wrong: right here, or refused with the reason."""

import random
import threading
import warnings

import pytest
from replays import is_replayed, refusal, same

import candelabra
from candelabra import nn, optim

SCALE = 2.0


def agrees(function, batches, changes=None):
    """Compare calls of a compiled function with ordinary ones, some state changing in between."""
    compiled = candelabra.compile(function)
    for number, arguments in enumerate(batches):
        if changes:
            changes(number)
        expected = function(*arguments)
        assert same(compiled(*arguments), expected), number
    return compiled


def randoms(count=10):
    return [(candelabra.randn(3, 4),) for _ in range(count)]


# ---- constants


def test_a_number_as_an_argument_is_not_frozen():
    compiled = agrees(lambda x, a: x * a, [(candelabra.randn(3), float(n // 4)) for n in range(12)])
    assert is_replayed(compiled)


def test_a_global_is_not_frozen():
    global SCALE

    def change(number):
        global SCALE
        SCALE = 2.0 + number // 5

    compiled = agrees(lambda x: x * SCALE, randoms(20), change)
    assert is_replayed(compiled)
    assert len(compiled.programs) > 1


def test_a_variable_of_an_enclosing_function_is_not_frozen():
    factor = 1.0

    def change(number):
        nonlocal factor
        factor = 1.0 + number // 5

    assert is_replayed(agrees(lambda x: x * factor, randoms(20), change))


def test_an_attribute_is_not_frozen():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 1.0

        def forward(self, x):
            return x * self.factor

    model = Scaled()
    compiled = candelabra.compile(model)
    for number in range(20):
        model.factor = 1.0 + number // 5
        x = candelabra.randn(3)
        assert compiled(x).equal(x * model.factor)


def test_an_attribute_of_an_object_in_a_list_in_a_dict_is_not_frozen():
    class Options:
        factor = 1.0

    table = {"options": [Options()]}

    def change(number):
        table["options"][0].factor = 1.0 + number // 5

    assert is_replayed(agrees(lambda x: x * table["options"][0].factor, randoms(20), change))


def test_an_attribute_of_a_class_is_not_frozen():
    class Options:
        factor = 1.0

    def change(number):
        if number % 5 == 0:
            Options.factor = 1.0 + number

    options = Options()
    assert is_replayed(agrees(lambda x: x * options.factor, randoms(20), change))


def test_an_entry_of_a_list_is_not_frozen():
    factors = [1.0, 2.0]

    def change(number):
        factors[1] = 2.0 + number // 5

    assert is_replayed(agrees(lambda x: x * factors[1], randoms(20), change))


def test_a_number_that_differs_between_recordings_is_refused():
    message = refusal(lambda x: x * random.random(), *randoms(8))
    assert "argument 'other' of mul()" in message
    assert "test_known_traps.py" in message


def test_a_tensor_of_the_host_that_differs_is_refused():
    message = refusal(lambda x: x + candelabra.tensor([random.random()]), *randoms(8))
    assert "made of other values" in message


def test_state_that_the_function_changes_is_refused():
    class Counter:
        count = 0

    counter = Counter()
    counter.count = 0

    def function(x):
        counter.count += 1
        return x + 1

    message = refusal(function, *randoms(8))
    assert "'count'" in message
    assert counter.count == 8


def test_a_list_that_the_function_appends_to_is_refused():
    kept = []

    def function(x):
        y = x + 1
        kept.append(y)
        return y * 2

    message = refusal(function, *randoms(8))
    assert "kept elsewhere" in message or "a list" in message
    assert len(kept) == 8


def test_an_attribute_that_is_set_to_a_result_is_refused():
    class Remembers(nn.Module):
        def forward(self, x):
            self.last = x * 2
            return self.last + 1

    model = Remembers()
    refusal(model.__call__, *randoms(8))
    x = candelabra.randn(3, 4)
    model(x)
    assert model.last.equal(x * 2)


def test_printing_is_refused(capsys):
    def function(x):
        print("called")
        return x + 1

    assert "print() writes" in refusal(function, *randoms(6))
    assert capsys.readouterr().out == "called\n" * 6


# ---- branches


def test_branches_on_values_are_refused():
    def function(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    message = refusal(function, *randoms(8))
    assert "reads the value of a tensor" in message
    assert "test_known_traps.py:" in message
    assert "outside the compiled function" in message


def test_branches_on_shapes_have_a_program_each():
    def function(x):
        return x + 1 if x.shape[0] > 3 else x - 1

    batches = [(candelabra.randn(2 + number % 3, 4),) for number in range(20)]
    compiled = agrees(function, batches)
    assert len(compiled.programs) == 3


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x[x > 0], "depends on data"),
        (lambda x: x * x.sum().item(), "reads the value"),
        (lambda x: x * float(x.sum()), "reads the value"),
        (lambda x: x + candelabra.from_numpy(x.numpy() * 2), "numpy()"),
        (lambda x: x[:, int(x.argmax()) % 2], "reads the value"),
        (lambda x: x.unique(), "depends on data"),
        (lambda x: x.nonzero(), "depends on data"),
        (lambda x: (x + 1).tolist(), "tolist()"),
    ],
)
def test_values_that_the_host_reads_are_refused(function, reason):
    message = refusal(function, *randoms(6))
    assert reason in message
    assert "test_known_traps.py:" in message


def test_a_refused_function_still_computes():
    def function(x):
        return x * x.max().item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agrees(function, randoms(8))


def test_fullgraph_raises():
    compiled = candelabra.compile(lambda x: x * x.sum().item(), fullgraph=True)
    compiled(candelabra.ones(2))
    with pytest.raises(candelabra.compiler.CompileError, match="reads the value"):
        compiled(candelabra.ones(2))


# ---- memory


def test_results_are_not_overwritten():
    compiled = candelabra.compile(lambda x: x.exp())
    kept = []
    for _ in range(10):
        x = candelabra.randn(5)
        kept.append((compiled(x), x.exp()))
    assert is_replayed(compiled)
    assert all(a.equal(b) for a, b in kept)


def test_arguments_that_are_one_tensor_are_told_from_two():
    def function(x, y):
        x.add_(1)
        return x * y

    compiled = candelabra.compile(function)
    for number in range(20):
        x = candelabra.randn(4)
        y = x if number % 2 else candelabra.randn(4)
        a, b = x.clone(), y.clone()
        expected = function(a, a if number % 2 else b)
        assert compiled(x, y).equal(expected)
        assert x.equal(a)


def test_arguments_that_are_views_of_one_tensor():
    def function(x, y):
        x.add_(1)
        return x * y

    compiled = candelabra.compile(function)
    for number in range(20):
        data, other = candelabra.randn(8), candelabra.randn(8)
        copy = data.clone()
        begin = number % 3
        expected = function(copy[:4], copy[begin : begin + 4])
        assert compiled(data[:4], data[begin : begin + 4]).equal(expected)
        assert data.equal(copy)
        assert other.shape == (8,)


def test_a_parameter_as_an_argument():
    model = nn.Linear(3, 3)

    def function(x, weight):
        with candelabra.no_grad():
            weight.mul_(0.5)
            return model(x)

    compiled = candelabra.compile(function)
    for number in range(12):
        x = candelabra.randn(2, 3)
        weight = model.weight if number % 2 else candelabra.randn(3, 3, requires_grad=True)
        before = weight.detach().clone()
        computed = compiled(x, weight)
        assert weight.detach().equal(before * 0.5)
        assert computed.equal(nn.functional.linear(x, model.weight, model.bias).detach())


def test_arguments_changed_in_place():
    def function(x, y):
        x.add_(y).mul_(2)
        return x.sum()

    compiled = candelabra.compile(function)
    for _ in range(8):
        x, y = candelabra.randn(3), candelabra.randn(3)
        copy = x.clone()
        version = x._version
        expected = function(copy, y)
        assert compiled(x, y).equal(expected)
        assert x.equal(copy)
        assert x._version == version + 2
    assert is_replayed(compiled)


def test_results_that_are_arguments_or_views_of_them():
    def function(x):
        return x, x.t(), x[1:], x + 1

    compiled = candelabra.compile(function)
    for _ in range(8):
        x = candelabra.randn(4, 4)
        same_tensor, transposed, part, more = compiled(x)
        assert same_tensor is x
        assert transposed._base is x
        assert part._base is x
        part.zero_()
        assert x[1:].abs().sum() == 0
        assert transposed.equal(x.t())
        assert more.shape == (4, 4)
    assert is_replayed(compiled)


def test_views_of_an_argument_that_begins_elsewhere():
    data = candelabra.randn(20, 4)
    compiled = candelabra.compile(lambda x: (x[1:], x * 2))
    for begin in range(10):
        x = data[begin : begin + 3]
        part, double = compiled(x)
        assert part.equal(x[1:])
        assert part.data_ptr() == x[1:].data_ptr()
        assert double.equal(x * 2)
    assert is_replayed(compiled)


def test_results_that_share_memory():
    def function(x):
        y = x + 1
        return y, y[0]

    compiled = candelabra.compile(function)
    for _ in range(6):
        whole, part = compiled(candelabra.zeros(3, 2))
        part.fill_(7)
        assert whole.tolist() == [[7.0, 7.0], [1.0, 1.0], [1.0, 1.0]]
    assert is_replayed(compiled)


# ---- modules


def model_and_step():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))

    def function(x):
        with candelabra.no_grad():
            return model(x)

    return model, function


def test_switching_between_training_and_evaluation():
    model, function = model_and_step()
    compiled = candelabra.compile(function)
    twin, twin_function = model_and_step()
    twin.load_state_dict(model.state_dict())
    for number in range(24):
        model.train(number % 8 < 4)
        twin.train(number % 8 < 4)
        x = candelabra.randn(5, 4)
        state = candelabra.get_rng_state()
        computed = compiled(x)
        candelabra.set_rng_state(state)
        assert computed.equal(twin_function(x))
    assert model[2].running_mean.equal(twin[2].running_mean)
    assert model[2].num_batches_tracked == 12
    assert len(compiled.programs) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "weight", nn.Parameter(candelabra.zeros(2, 3))),
        lambda model: setattr(model.weight, "data", candelabra.zeros(2, 3)),
        lambda model: model.weight.data.zero_(),
        lambda model: model.load_state_dict({"weight": candelabra.zeros(2, 3), "bias": candelabra.ones(2)}),
        lambda model: model.load_state_dict({"weight": candelabra.zeros(2, 3), "bias": model.bias}, assign=True),
        lambda model: model.register_parameter("bias", None),
        lambda model: model.double(),
        lambda model: setattr(model, "forward", lambda x: x),
        lambda model: model.register_forward_hook(lambda module, arguments, output: output + 1),
        lambda model: model.register_forward_pre_hook(lambda module, arguments: (arguments[0] + 1,)),
        lambda model: setattr(type(model), "forward", lambda self, x: x * 2),
        lambda model: nn.utils.parametrizations.weight_norm(model),
    ],
)
def test_changes_of_a_module_are_seen(change):
    class Linear(nn.Linear):
        pass

    model = Linear(3, 2)

    def function(x):
        with candelabra.no_grad():
            return model(x)

    compiled = candelabra.compile(function)
    for _ in range(6):
        compiled(candelabra.randn(4, 3))
    assert is_replayed(compiled)
    change(model)
    for _ in range(8):
        x = candelabra.randn(4, 3, dtype=model.weight.dtype)
        assert compiled(x).equal(function(x))


def test_a_hook_of_all_modules_is_seen():
    model = nn.Linear(3, 2)

    def function(x):
        with candelabra.no_grad():
            return model(x)

    compiled = candelabra.compile(function)
    for _ in range(5):
        compiled(candelabra.ones(1, 3))
    before = compiled(candelabra.ones(1, 3))
    handle = nn.modules.module.register_module_forward_hook(lambda module, arguments, output: output + 1)
    try:
        after = compiled(candelabra.ones(1, 3))
    finally:
        handle.remove()
    assert after.equal(before + 1)
    assert compiled(candelabra.ones(1, 3)).equal(before)


def test_a_hook_of_a_parameter_is_seen():
    model = nn.Linear(3, 1)

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    compiled = candelabra.compile(step)
    for _ in range(5):
        compiled(candelabra.ones(1, 3))
    assert is_replayed(compiled)
    model.weight.register_hook(lambda grad: grad * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            compiled(candelabra.ones(1, 3))
            assert model.weight.grad.tolist() == [[10.0, 10.0, 10.0]]


def test_frozen_parameters_are_seen():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    compiled = candelabra.compile(step)
    for _ in range(5):
        compiled(candelabra.ones(1, 3))
    model[0].requires_grad_(False)
    for _ in range(5):
        compiled(candelabra.ones(1, 3))
        assert model[0].weight.grad is None
        assert model[1].weight.grad is not None


# ---- random state, threads, modes


def test_random_numbers_go_on_as_in_ordinary_calls():
    def function(x):
        return nn.functional.dropout(x, 0.5) + candelabra.randn(4)

    compiled = candelabra.compile(function)
    candelabra.manual_seed(5)
    expected = [(function(candelabra.ones(4)), candelabra.rand(2)) for _ in range(10)]
    candelabra.manual_seed(5)
    computed = [(compiled(candelabra.ones(4)), candelabra.rand(2)) for _ in range(10)]
    assert is_replayed(compiled)
    assert same(computed, expected)


def test_a_seed_that_is_set_inside_is_refused():
    def function(x):
        candelabra.manual_seed(0)
        return x + candelabra.rand(4)

    message = refusal(function, *randoms(5))
    assert "random generator" in message


def test_the_number_of_threads_may_change():
    def function(x):
        return (x @ x).softmax(1).sum(0)

    compiled = candelabra.compile(function)
    x = candelabra.randn(200, 200)
    before = candelabra.get_num_threads()
    try:
        for number in range(8):
            candelabra.set_num_threads(1 + number % 2)
            assert compiled(x).equal(function(x))
    finally:
        candelabra.set_num_threads(before)
    assert is_replayed(compiled)


def test_grad_mode_is_seen():
    weight = candelabra.ones(3, requires_grad=True)

    def function(x):
        return x * weight

    compiled = candelabra.compile(function)
    with candelabra.no_grad():
        for _ in range(6):
            assert not compiled(candelabra.ones(3)).requires_grad
    assert is_replayed(compiled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = compiled(candelabra.ones(3))
    assert result.requires_grad
    result.sum().backward()
    assert weight.grad.tolist() == [1.0, 1.0, 1.0]


def test_the_default_dtype_is_seen():
    compiled = candelabra.compile(lambda x: candelabra.zeros(2) + x)
    try:
        for number in range(16):
            candelabra.set_default_dtype(candelabra.float64 if number % 8 > 3 else candelabra.float32)
            assert compiled(candelabra.ones(2, dtype=candelabra.int64)).dtype == candelabra.get_default_dtype()
    finally:
        candelabra.set_default_dtype(candelabra.float32)


def test_autocast_outside_and_inside():
    weight = candelabra.randn(4, 4)

    def plain(x):
        return x @ weight

    def casting(x):
        with candelabra.autocast("cpu"):
            return x @ weight

    compiled, compiled_casting = candelabra.compile(plain), candelabra.compile(casting)
    for _ in range(8):
        x = candelabra.randn(2, 4)
        assert compiled(x).dtype == candelabra.float32
        with candelabra.autocast("cpu"):
            assert compiled(x).dtype == candelabra.bfloat16
        assert compiled_casting(x).equal(casting(x))
    assert is_replayed(compiled)
    assert is_replayed(compiled_casting)


def test_transformations_see_every_operator():
    compiled = candelabra.compile(lambda x: x.sin() * 2)
    x = candelabra.randn(3)
    for _ in range(5):
        compiled(x)
    batched = candelabra.func.vmap(compiled)(candelabra.randn(4, 3))
    assert batched.shape == (4, 3)
    assert candelabra.func.grad(lambda x: compiled(x).sum())(x).equal(x.cos() * 2)


# ---- control


def test_exceptions_in_the_middle():
    def function(x, index):
        x.add_(1)
        return x.index_select(0, index)

    compiled = candelabra.compile(function)
    good, bad = candelabra.tensor([1, 0]), candelabra.tensor([9, 0])
    for number in range(14):
        x = candelabra.zeros(3)
        if number % 4 == 3:
            with pytest.raises(IndexError):
                compiled(x, bad)
        else:
            assert compiled(x, good).tolist() == [1.0, 1.0]
        assert x.tolist() == [1.0, 1.0, 1.0]
    assert is_replayed(compiled)
    assert not candelabra._C.is_recording()


def test_exceptions_of_the_function():
    def function(x, fails):
        if fails:
            raise ValueError("asked to fail")
        return x + 1

    compiled = candelabra.compile(function)
    for number in range(12):
        if number % 3 == 2:
            with pytest.raises(ValueError, match="asked to fail"):
                compiled(candelabra.ones(2), True)
        else:
            assert compiled(candelabra.ones(2), False).tolist() == [2.0, 2.0]
    assert is_replayed(compiled)


def test_nested_compiled_functions():
    inner = candelabra.compile(lambda x: x.sin())
    outer = candelabra.compile(lambda x: inner(x) + inner(x * 2))
    for _ in range(8):
        x = candelabra.randn(3)
        assert outer(x).equal(x.sin() + (x * 2).sin())
        assert inner(x).equal(x.sin())
    assert is_replayed(outer)
    assert is_replayed(inner)


def test_generators_run_as_written():
    def function(x):
        yield x + 1
        yield x + 2

    compiled = candelabra.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            assert [y.tolist() for y in compiled(candelabra.zeros(1))] == [[1.0], [2.0]]
    assert not compiled.programs


def test_concurrent_calls():
    weight = candelabra.randn(64, 64)

    def function(x):
        return ((x @ weight).relu() @ weight).exp().sum(1)

    compiled = candelabra.compile(function)
    failures = []

    def work(seed):
        inputs = [candelabra.randn(64, 64, generator=candelabra.Generator().manual_seed(seed + k)) for k in range(40)]
        for x in inputs:
            if not compiled(x).equal(function(x)):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert is_replayed(compiled)


def test_an_optimizer_that_steps_in_python_is_refused():
    weight = nn.Parameter(candelabra.ones(3))
    optimizer = optim.SGD([weight], lr=0.1, foreach=False)

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    assert "without its fused operator" in refusal(step, *[(candelabra.ones(3),)] * 6)
    assert weight.detach().allclose(candelabra.full((3,), 0.4))


def test_a_schedule_inside_the_step_is_refused():
    weight = nn.Parameter(candelabra.ones(3))
    optimizer = optim.SGD([weight], lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        scheduler.step()

    refusal(step, *[(candelabra.ones(3),)] * 8)
    assert optimizer.param_groups[0]["lr"] == 0.1 * 0.5**8


def test_hooks_of_an_optimizer_are_called():
    weight = nn.Parameter(candelabra.ones(3))
    optimizer = optim.SGD([weight], lr=0.1)
    calls = []

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    compiled = candelabra.compile(step)
    for _ in range(5):
        compiled(candelabra.ones(3))
    assert is_replayed(compiled)
    optimizer.register_step_post_hook(lambda *arguments: calls.append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            compiled(candelabra.ones(3))
    assert len(calls) == 5


def test_calls_are_recorded_again_and_compared():
    source = iter([1.0] * 6 + [2.0] * 100)

    def function(x):
        return x * next(source)

    compiled = candelabra.compile(function)
    for _ in range(5):
        assert compiled(candelabra.ones(2)).tolist() == [1.0, 1.0]
    (program,) = compiled.programs
    program.calls_left = 0
    for _ in range(3):
        next(source)
    with pytest.warns(UserWarning, match="a later call computes otherwise.*argument 'other' of mul"):
        assert compiled(candelabra.ones(2)).tolist() == [2.0, 2.0]
    assert not compiled.programs


def test_a_comparison_that_agrees_keeps_the_program():
    compiled = candelabra.compile(lambda x: x * 2)
    for _ in range(5):
        compiled(candelabra.ones(2))
    (program,) = compiled.programs
    program.calls_left = 0
    assert compiled(candelabra.ones(2)).tolist() == [2.0, 2.0]
    assert program.calls_left == 1000
    assert compiled.programs == [program]


def test_at_most_sixteen_programs():
    compiled = candelabra.compile(lambda x: x + 1)
    for size in range(1, 25):
        for _ in range(4):
            assert compiled(candelabra.zeros(size)).shape == (size,)
    assert len(compiled.programs) == 16


def test_state_that_changes_in_every_call_is_given_up():
    holder = {"factor": 0}

    def function(x):
        return x * holder["factor"]

    compiled = candelabra.compile(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(200):
            holder["factor"] = number // 3
            assert compiled(candelabra.ones(1)).item() == number // 3
    assert any("changes between calls" in str(one.message) for one in caught)


def test_arguments_with_a_history_run_as_written():
    weight = candelabra.ones(3, requires_grad=True)
    compiled = candelabra.compile(lambda x: x * 2)
    for _ in range(6):
        y = compiled(weight * 3)
        assert y.requires_grad
    y.sum().backward()
    assert weight.grad.tolist() == [6.0, 6.0, 6.0]


def test_tensors_that_nothing_names_are_refused():
    class Slotted:
        __slots__ = ("tensor",)

    slotted = Slotted()
    slotted.tensor = candelabra.ones(3)
    message = refusal(lambda x: x + slotted.tensor, *[(candelabra.ones(3),)] * 8)
    assert "neither an argument nor reached through names" in message
