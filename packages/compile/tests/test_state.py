"""State that a program depends on: modules, modes, random numbers, exceptions, threads."""

import threading
import warnings

import numpy
import pytest
from replays import is_replayed, randoms, refusal, same

import candelabra
from candelabra import nn, optim

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


def test_inference_mode():
    model = nn.Linear(3, 2)
    compiled = candelabra.compile(model.__call__)
    with candelabra.inference_mode():
        for _ in range(6):
            x = candelabra.randn(4, 3)
            result = compiled(x)
            assert result.is_inference()
            assert result.equal(model(x))
    assert is_replayed(compiled)


def test_a_subclass_of_tensor_as_an_argument_runs_as_written():
    class Loud(candelabra.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Loud.calls += 1
            return super().__torch_function__(func, types, args, kwargs)

    compiled = candelabra.compile(lambda x: x * 2)
    for _ in range(6):
        compiled(candelabra.ones(2).as_subclass(Loud))
    assert Loud.calls >= 6
    assert not compiled.programs


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


@pytest.mark.parametrize("dtypes", ["float32 bfloat16 bfloat16", "bfloat16 float32 float16", "float32 float32 float32"])
@pytest.mark.parametrize("has_mask", [False, True])
def test_attention_of_several_dtypes_under_autocast(dtypes, has_mask):
    mask = candelabra.randn(5, 5) if has_mask else None

    def function(*inputs):
        with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
            result = nn.functional.scaled_dot_product_attention(*inputs, attn_mask=mask)
        return result, *candelabra.autograd.grad(result.float().square().sum(), inputs)

    compiled = candelabra.compile(function, fullgraph=True)
    for _ in range(6):
        inputs = [
            candelabra.randn(2, 2, 5, 8).to(getattr(candelabra, name)).requires_grad_() for name in dtypes.split()
        ]
        expected, found = function(*inputs), compiled(*inputs)
        assert [x.dtype for x in found] == [candelabra.bfloat16, *(x.dtype for x in inputs)]
        assert all(map(candelabra.equal, found, expected))
    assert is_replayed(compiled)


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
    # No guard sees the state of an extension.
    before = numpy.getbufsize()

    def function(x):
        return x * (1 if numpy.getbufsize() == before else 2)

    compiled = candelabra.compile(function)
    for _ in range(5):
        assert compiled(candelabra.ones(2)).tolist() == [1.0, 1.0]
    (program,) = compiled.programs
    program.calls_left = 0
    numpy.setbufsize(2 * before)
    try:
        with pytest.warns(UserWarning, match="a later call computes otherwise.*argument 'other' of mul"):
            assert compiled(candelabra.ones(2)).tolist() == [2.0, 2.0]
    finally:
        numpy.setbufsize(before)
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


def test_tensors_that_nothing_names_are_refused():
    class Slotted:
        __slots__ = ("tensor",)

    slotted = Slotted()
    slotted.tensor = candelabra.ones(3)
    message = refusal(lambda x: x + slotted.tensor, *[(candelabra.ones(3),)] * 8)
    assert "neither an argument nor reached through names" in message


@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_a_schedule_of_steps_that_change_nothing_at_first(gamma):
    """The rate changes after calls that agree: only the scheduler's own counter shows it."""
    results = []
    for compiles in (False, True):
        candelabra.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        scheduler = optim.lr_scheduler.StepLR(optimizer, 5, gamma)

        def step(x, model=model, optimizer=optimizer, scheduler=scheduler):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss.detach()

        function = candelabra.compile(step) if compiles else step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses = [function(candelabra.ones(2, 4)).item() for _ in range(12)]
        results.append((losses, scheduler.last_epoch, optimizer.param_groups[0]["lr"]))
    assert results[0] == results[1]


def test_an_attribute_of_an_object_that_hides_one_of_its_class():
    class Settings:
        scale = 1.0

    settings = Settings()
    compiled = candelabra.compile(lambda x: x * settings.scale)
    found = []
    for number in range(10):
        if number == 6:
            settings.scale = 3.0
        found.append(compiled(candelabra.ones(1)).item())
    assert found == [1.0] * 6 + [3.0] * 4
