"""State that code reads in less usual ways: a change is noticed, or the function is refused."""

import builtins
import collections
import contextlib
import contextvars
import functools
import gc
import operator
import os
import queue
import sys
import threading
import types
import warnings
import weakref

import pytest
from replays import agrees_or_refuses, is_replayed

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F

FACTOR = 1.0


# ---- functions


def changed_default(function):
    def change(number):
        if number % 6 == 0:
            function.__defaults__ = (1.0 + number,)

    return change


def test_defaults_of_the_function_and_of_others():
    def scaled(x, factor=1.0):
        return x * factor

    assert agrees_or_refuses(lambda x: scaled(x), changed_default(scaled))
    assert agrees_or_refuses(scaled, changed_default(scaled))


def test_defaults_of_keywords():
    def scaled(x, *, factor=1.0):
        return x * factor

    def replace(number):
        if number % 6 == 0:
            scaled.__kwdefaults__ = {"factor": 1.0 + number}

    def change(number):
        scaled.__kwdefaults__["factor"] = 1.0 + number // 6

    assert agrees_or_refuses(lambda x: scaled(x), replace)
    assert agrees_or_refuses(lambda x: scaled(x), change)


def test_code_and_attributes_of_functions():
    def one(x):
        return x * one.factor

    def other(x):
        return x - 1

    one.factor = 1.0
    codes = [(lambda x: x * 2).__code__, (lambda x: x * 3).__code__]

    def change(number):
        one.factor = 1.0 + number // 6
        other.__code__ = codes[number // 6 % 2]

    assert agrees_or_refuses(one, change)
    assert agrees_or_refuses(lambda x: other(x), change)


def test_functions_with_a_cache():
    entries = [1.0]

    @functools.lru_cache
    def factor():
        return entries[0]

    def change(number):
        if number % 6 == 0:
            entries[0] = 1.0 + number
            factor.cache_clear()

    assert agrees_or_refuses(lambda x: x * factor(), change)


def test_a_compiled_function_inside():
    options = types.SimpleNamespace(factor=1.0)
    inner = candelabra.compile(lambda x: x * options.factor)

    def change(number):
        options.factor = 1.0 + number // 6

    assert agrees_or_refuses(lambda x: inner(x) + 1, change)


# ---- attributes


class Stored:
    def __init__(self):
        self.table = {"factor": 1.0}
        self.factor1 = 1.0

    def __getattr__(self, name):
        return self.__dict__["table"][name]

    @property
    def computed(self):
        return getattr(self, "factor" + str(1))


class Hidden:
    def __init__(self):
        object.__setattr__(self, "kept", 1.0)

    def __getattribute__(self, name):
        return object.__getattribute__(self, "kept")


def test_attributes_that_are_computed():
    stored, hidden = Stored(), Hidden()
    by_name = operator.attrgetter("factor1")
    name = "".join(["fac", "tor1"])

    def change(number):
        stored.table["factor"] = stored.factor1 = 1.0 + number // 6
        object.__setattr__(hidden, "kept", 1.0 + number // 6)

    for function in (
        lambda x: x * stored.factor,
        lambda x: x * stored.computed,
        lambda x: x * getattr(stored, f"factor{1}"),
        lambda x: x * vars(stored)["factor" + str(1)],
        lambda x: x * stored.__dict__[name],
        lambda x: x * by_name(stored),
        lambda x: x * hidden.anything,
    ):
        agrees_or_refuses(function, change)


def test_descriptors_and_metaclasses():
    entries = [1.0]

    class Descriptor:
        def __get__(self, owner, kind):
            return entries[0]

    class Meta(type):
        factor = 1.0

        @property
        def doubled(cls):
            return 2 * cls.factor

    class Owner(metaclass=Meta):
        described = Descriptor()

    owner = Owner()

    def change(number):
        entries[0] = 1.0 + number // 6
        if number % 6 == 0:
            Meta.factor = 1.0 + number

    assert agrees_or_refuses(lambda x: x * owner.described, change)
    assert agrees_or_refuses(lambda x: x * Owner.doubled, change)


def test_the_class_and_the_dict_of_an_object():
    class One:
        def factor(self):
            return 1.0

    class Two:
        def factor(self):
            return 2.0

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 1.0

        def forward(self, x):
            return x * self.factor

    changing, replaced, module = One(), Two(), Scaled()

    def change(number):
        changing.__class__ = One if number < 9 else Two
        if number % 6 == 0:
            replaced.__dict__ = {"value": 1.0 + number}
            module.__dict__ = {**vars(module), "factor": 1.0 + number}

    assert agrees_or_refuses(lambda x: x * changing.factor(), change)
    assert agrees_or_refuses(lambda x: x * replaced.value, change)
    assert agrees_or_refuses(lambda x: module(x), change)


def test_attributes_that_are_missing_at_first():
    options, module = types.SimpleNamespace(), types.ModuleType("options_of_a_test")
    module.__file__ = "/options_of_a_test.py"

    def change(number):
        if number == 9:
            options.factor = module.factor = 3.0

    assert agrees_or_refuses(lambda x: x * 3 if hasattr(options, "factor") else x, change)
    assert agrees_or_refuses(lambda x: x * 3 if hasattr(module, "factor") else x, change)


# ---- names


def test_globals_that_come_later():
    def tried(x):
        try:
            return x * COMES_LATER
        except NameError:
            return x

    def change(number):
        if number == 9:
            globals()["COMES_LATER"] = 3.0

    for function in (tried, lambda x: x * 3 if "COMES_LATER" in globals() else x):
        try:
            assert agrees_or_refuses(function, change)
        finally:
            globals().pop("COMES_LATER", None)


def test_builtins_that_are_hidden_or_replaced():
    plain = abs
    try:
        assert agrees_or_refuses(lambda x: abs(x), lambda number: number == 9 and globals().update(abs=lambda x: x * 5))
    finally:
        del globals()["abs"]
    try:
        assert agrees_or_refuses(
            lambda x: abs(x), lambda number: number == 9 and setattr(builtins, "abs", lambda x: x * 5)
        )
    finally:
        builtins.abs = plain


def test_functions_and_methods_that_are_replaced(monkeypatch):
    def change(number):
        if number == 9:
            monkeypatch.setattr(F, "relu", lambda x: x * 7)
            monkeypatch.setattr(candelabra.Tensor, "relu_or_more", lambda x: x * 7, raising=False)

    monkeypatch.setattr(candelabra.Tensor, "relu_or_more", lambda x: x * 2, raising=False)
    assert agrees_or_refuses(lambda x: F.relu(x).relu_or_more(), change)


def test_modules_that_the_function_imports(monkeypatch):
    module = types.ModuleType("imported_by_a_test")
    module.__file__ = "/imported_by_a_test.py"
    monkeypatch.setitem(sys.modules, "imported_by_a_test", module)

    def whole(x):
        import imported_by_a_test

        return x * imported_by_a_test.factor

    def part(x):
        from imported_by_a_test import factor

        return x * factor

    def change(number):
        module.factor = 1.0 + number // 6

    for function in (whole, part, lambda x: x * sys.modules["imported_by_a_test"].factor):
        assert agrees_or_refuses(function, change)


# ---- containers


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_the_order_of_a_dict(kind):
    table = kind(a=2.0, b=3.0)

    def function(x):
        for number, value in enumerate(table.values()):
            x = x * (number + 1) + value
        return x

    def change(number):
        if number % 6:
            return
        if kind is collections.OrderedDict:
            table.move_to_end("a", last=bool(number % 12))
        else:
            table["a"] = table.pop("a")

    assert agrees_or_refuses(function, change)


class Table(dict):
    pass


def test_kinds_of_dicts():
    inner = {"factor": 1.0}
    tables = [
        Table(factor=1.0),
        collections.Counter(factor=1),
        collections.UserDict(factor=1.0),
        collections.ChainMap({}, inner),
        types.MappingProxyType(inner),
        inner.values(),
    ]

    def change(number):
        inner["factor"] = 1.0 + number // 6
        for table in tables[:3]:
            table["factor"] = 1 + number // 6

    for table in tables[:-1]:
        assert agrees_or_refuses(lambda x, table=table: x * table["factor"], change)
    assert agrees_or_refuses(lambda x: x * sum(tables[-1]), change)


def test_large_containers():
    entries, table, nested = [1.0] * 5000, dict.fromkeys(range(5000), 1.0), tuple([1.0] for _ in range(5000))
    huge = [1.0] * (1 << 17)

    def change(number):
        entries[4000] = table[4000] = nested[4000][0] = huge[4000] = 1.0 + number // 6

    for function in (
        lambda x: x * entries[4000],
        lambda x: x * table[4000],
        lambda x: x * nested[4000][0],
        lambda x: x * huge[4000],
    ):
        agrees_or_refuses(function, change)


def test_objects_of_extensions():
    variable, local = contextvars.ContextVar("factor", default=1.0), threading.local()

    class Owner:
        factor = 1.0

    owner = Owner()
    reference = weakref.ref(owner)

    def change(number):
        owner.factor = local.factor = 1.0 + number // 6
        variable.set(1.0 + number // 6)

    for function in (
        lambda x: x * variable.get(),
        lambda x: x * local.factor,
        lambda x: x * reference().factor,
    ):
        agrees_or_refuses(function, change)


# ---- the process


def test_variables_of_the_environment(monkeypatch):
    environ = os.environ

    def change(number):
        monkeypatch.setenv("CANDELABRA_TEST_FACTOR", str(1 + number // 6))

    for function in (
        lambda x: x * float(os.environ["CANDELABRA_TEST_FACTOR"]),
        lambda x: x * float(os.getenv("CANDELABRA_TEST_FACTOR")),
        lambda x: x * float(environ.get("CANDELABRA_TEST_FACTOR")),
    ):
        assert agrees_or_refuses(function, change)


def test_files(tmp_path, monkeypatch):
    path = tmp_path / "factor"

    def read(x):
        with open(path) as file:
            return x * float(file.read())

    def change(number):
        path.write_text(str(1 + number // 6))
        if number == 9:
            (tmp_path / "flag").touch()
            monkeypatch.chdir(tmp_path)

    flag = str(tmp_path / "flag")
    for function in (
        read,
        lambda x: x * (2 if os.path.exists(flag) else 1),
        lambda x: x * len(os.getcwd()),
    ):
        assert not agrees_or_refuses(function, change)
        monkeypatch.chdir("/")
        (tmp_path / "flag").unlink()


def test_threads_and_seeds_that_code_reads():
    before = candelabra.get_num_threads()

    def change(number):
        candelabra.set_num_threads(1 + number // 9)
        candelabra.manual_seed(number // 6 + 1)

    try:
        for function in (lambda x: x * candelabra.get_num_threads(), lambda x: x * candelabra.initial_seed()):
            assert not agrees_or_refuses(function, change)
    finally:
        candelabra.set_num_threads(before)


# ---- arguments


def test_what_code_sees_of_an_argument_besides_its_values():
    data = candelabra.arange(40.0)

    def tagged(number):
        x = candelabra.ones(2)
        x.factor = 1.0 + number // 6
        return (x,)

    def counted(number):
        x = candelabra.ones(2)
        for _ in range(number // 6):
            x.add_(1)
        return (x,)

    def twice(number):
        x = candelabra.ones(2)
        return (x, x) if number // 6 % 2 else (x, x.view(2))

    for function, arguments in (
        (lambda x: x * x.factor, tagged),
        (lambda x: x * x._version, counted),
        (lambda x: x * (x.storage_offset() + 1), lambda number: (data[number // 6 :][:16],)),
        (
            lambda x: x * 2 if x._base is None else x * 3,
            lambda number: (data[1:] if number // 6 else data[1:].clone(),),
        ),
        (lambda x, y: x * 2 if x is y else x * 3, twice),
    ):
        agrees_or_refuses(function, lambda number: None, arguments)


# ---- effects


def test_effects_are_not_left_out():
    """Each call has its effect, also where it was there before the recorded calls."""
    options, box = types.SimpleNamespace(), queue.SimpleQueue()

    class Owner:
        pass

    def warns(x):
        warnings.warn("called", stacklevel=1)
        return x + 1

    def puts(x):
        box.put(1)
        return x + 1

    def sets_attribute(x):
        options.flag = True
        return x + 1

    def sets_class(x):
        Owner.flag = True
        return x + 1

    def sets_global(x):
        global SET_BY_A_TEST
        SET_BY_A_TEST = True
        return x + 1

    def sets_variable(x):
        os.environ["CANDELABRA_TEST_SET"] = "1"
        return x + 1

    for function, happened, undo in (
        (puts, lambda: not box.empty(), lambda: box.get()),
        (sets_attribute, lambda: hasattr(options, "flag"), lambda: delattr(options, "flag")),
        (sets_class, lambda: hasattr(Owner, "flag"), lambda: delattr(Owner, "flag")),
        (sets_global, lambda: "SET_BY_A_TEST" in globals(), lambda: globals().pop("SET_BY_A_TEST")),
        (sets_variable, lambda: "CANDELABRA_TEST_SET" in os.environ, lambda: os.environ.pop("CANDELABRA_TEST_SET")),
    ):
        for first_undone in (0, 5):
            compiled = candelabra.compile(function)
            for number in range(12):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compiled(candelabra.ones(1))
                assert happened(), (function, number)
                if number >= first_undone:
                    undo()
        with contextlib.suppress(KeyError, AttributeError):
            undo() if function is not puts else None
    compiled = candelabra.compile(warns)
    for _ in range(8):
        with pytest.warns(UserWarning, match="called"):
            compiled(candelabra.ones(1))


# ---- memory


class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.optimizer = optim.SGD(self.layer.parameters(), lr=0.1)
        self.step = candelabra.compile(self.plain_step)

    def plain_step(self, x):
        self.optimizer.zero_grad()
        loss = self.layer(x).square().sum()
        loss.backward()
        self.optimizer.step()
        return loss

    def forward(self, x):
        return self.layer(x)


def trainer_with_a_program():
    trainer = Trainer()
    for _ in range(6):
        trainer.step(candelabra.ones(2, 3))
    assert is_replayed(trainer.step)
    return weakref.ref(trainer), weakref.ref(trainer.layer.weight)


def trainer_with_units():
    trainer = Trainer()
    compiled = candelabra.compile(lambda x: trainer(x).sum().item())
    with warnings.catch_warnings(), candelabra.no_grad():
        warnings.simplefilter("ignore")
        for _ in range(8):
            compiled(candelabra.ones(2, 3))
    return weakref.ref(trainer), weakref.ref(compiled)


@pytest.mark.parametrize("make", [trainer_with_a_program, trainer_with_units])
def test_a_module_and_its_own_compiled_function_are_collected(make):
    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None]
