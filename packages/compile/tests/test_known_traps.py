"""What recording systems get silently wrong: right here, or refused with the reason."""

import gc
import itertools
import random
import time
import warnings
from collections import deque

import numpy
import pytest
from replays import agrees, is_replayed, randoms, refusal

import candelabra
from candelabra import nn

SCALE = 2.0


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


class Options:
    factor = 1.0
    table = {"factor": 1.0}

    @property
    def doubled(self):
        return 2 * self.table["factor"]


def change_class(number):
    if number % 5 == 0:
        Options.factor = 1.0 + number


def change_table(number):
    Options.table["factor"] = 1.0 + number // 5


OPTIONS = Options()


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (lambda x: x * Options.factor, change_class),
        (lambda x: x * OPTIONS.factor, change_class),
        (lambda x: x * Options.table["factor"], change_table),
        (lambda x: x * OPTIONS.table["factor"], change_table),
        (lambda x: x * getattr(OPTIONS, "table")["factor"], change_table),  # noqa: B009
        (lambda x: x * OPTIONS.doubled, change_table),
    ],
)
def test_attributes_of_classes_are_not_frozen(function, change):
    assert is_replayed(agrees(function, randoms(20), change))


def test_rare_branches_on_random_numbers_are_not_frozen():
    def function(x):
        return x + 1 if random.random() < 0.999 else x

    message = refusal(function, *randoms(6))
    assert "random()" in message


@pytest.mark.parametrize("draw", [numpy.random.default_rng(0).random, numpy.random.rand])
def test_numpys_random_numbers_are_refused(draw):
    generator = draw.__self__

    def function(x):
        return x + 1 if generator.random() < 2 else x

    assert "random numbers of NumPy" in refusal(function, *randoms(8))


def test_an_entry_of_a_list_is_not_frozen():
    factors = [1.0, 2.0]

    def change(number):
        factors[1] = 2.0 + number // 5

    assert is_replayed(agrees(lambda x: x * factors[1], randoms(20), change))


NUMBERS = itertools.count()


def ticks():
    """Another number in each call."""
    return float(next(NUMBERS))


def test_clocks_are_refused():
    assert "reads a clock" in refusal(lambda x: x + (time.time() < 0), *randoms(6))


def test_a_number_that_differs_between_recordings_is_refused():
    message = refusal(lambda x: x * ticks(), *randoms(8))
    assert "argument 'other' of mul()" in message
    assert "test_known_traps.py" in message


def test_a_tensor_of_the_host_that_differs_is_refused():
    message = refusal(lambda x: x + candelabra.tensor([ticks()]), *randoms(8))
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


class Slotted:
    __slots__ = ("factor",)


def test_what_no_guard_watches_is_refused():
    slotted = Slotted()
    slotted.factor = 1.0
    queue, chosen, table, numbers = deque([1.0]), {1.0}, numpy.ones(2), iter([1.0] * 100)
    for function in (
        lambda x: x * slotted.factor,
        lambda x: x * queue[0],
        lambda x: x * max(chosen),
        lambda x: x * float(table[0]),
        lambda x: x * next(numbers),
    ):
        assert "would not be noticed" in refusal(function, *randoms(8))


def test_what_no_guard_watches_may_be_there():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.names = {"a", "b"}
            self.history = deque([1])

        def forward(self, x):
            return x + 1

    assert is_replayed(agrees(Model().__call__, randoms()))


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


def test_arguments_that_are_containers():
    def function(batch, more):
        return batch["x"] * more[0] + batch["part"]["y"]

    compiled = candelabra.compile(function)
    for _ in range(8):
        x, y, z = candelabra.randn(3), candelabra.randn(3), candelabra.randn(3)
        assert compiled({"x": x, "part": {"y": y}}, [z]).equal(x * z + y)
    assert is_replayed(compiled)


def test_containers_of_arguments_that_the_function_changes_are_refused():
    def function(batch):
        batch["z"] = batch.pop("x") * 2
        return batch["z"] + 1

    compiled = candelabra.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(8):
            batch = {"x": candelabra.ones(2)}
            assert compiled(batch).tolist() == [3.0, 3.0]
            assert batch["z"].tolist() == [2.0, 2.0]
    assert not compiled.programs


def test_arguments_whose_form_the_function_changes_are_refused():
    message = refusal(lambda x: x.unsqueeze_(0) * 2, *randoms(8))
    assert "the form of a tensor" in message


def test_attributes_of_tensors_that_the_function_changes_are_refused():
    weight = candelabra.ones(3)
    weight.uses = 0

    def function(x):
        weight.uses = weight.uses + 1
        return x * weight

    assert "'uses'" in refusal(function, *[(candelabra.ones(3),)] * 8)
    assert weight.uses == 8


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


def test_callbacks_of_the_collector_are_not_part_of_a_call():
    def callback(phase, info):
        time.perf_counter()

    def function(x):
        containers = [[number] for number in range(5000)]
        return x + len(containers)

    compiled = candelabra.compile(function, fullgraph=True)
    gc.callbacks.append(callback)
    try:
        for _ in range(5):
            assert compiled(candelabra.ones(1)).item() == 5001
    finally:
        gc.callbacks.remove(callback)
    assert is_replayed(compiled)
    assert gc.isenabled()
