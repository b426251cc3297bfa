"""State of Python's own modules: a change is noticed, or the function is refused."""

import abc
import decimal
import fractions
import gc
import sys
import threading

import pytest
from replays import agrees_or_refuses, is_replayed, refusal

import candelabra

ONE = decimal.Decimal(1)
THIRD = decimal.Decimal("0.3333333333")


class Scales:
    """A class that nothing is derived from."""


class Other:
    """Another one."""


@pytest.mark.parametrize(
    "ask",
    [
        lambda abstract, kind: isinstance(kind(), abstract),
        lambda abstract, kind: issubclass(kind, abstract),
        lambda abstract, kind: _matches(abstract, kind()),
    ],
)
def test_classes_registered_with_abstract_ones(ask):
    Abstract = abc.ABCMeta("Abstract", (), {})
    kinds = [Scales, Other]

    def change(number):
        if number == 9:
            Abstract.register(Scales)

    assert agrees_or_refuses(lambda x: x * (2.0 if ask(Abstract, kinds[0]) else 3.0), change)
    assert ask(Abstract, Scales)
    assert not ask(Abstract, Other)


def _matches(abstract, value):
    match value:
        case abstract():
            return True
        case _:
            return False


@pytest.mark.parametrize(
    "compute",
    [
        lambda: float(decimal.Decimal(1) / 3),
        lambda: float(THIRD / 1),
        lambda: float(decimal.getcontext().prec),
        lambda: float(decimal.getcontext().create_decimal("0.123456789")),
    ],
)
def test_the_context_of_decimal(compute):
    def change(number):
        decimal.getcontext().prec = 3 + number // 6

    with decimal.localcontext():
        assert agrees_or_refuses(lambda x: x * compute(), change)


def test_a_decimal_as_an_argument():
    def change(number):
        decimal.getcontext().prec = 3 + number // 6

    with decimal.localcontext():
        agrees_or_refuses(lambda x, a: x * float(a / 3), change, lambda number: (candelabra.ones(3), ONE))


def test_flags_of_decimal():
    def change(number):
        decimal.getcontext().flags[decimal.Inexact] = number >= 9

    with decimal.localcontext():
        agrees_or_refuses(lambda x: x * (2.0 if decimal.getcontext().flags[decimal.Inexact] else 3.0), change)


def test_slots_of_pythons_own_classes():
    half = fractions.Fraction(1, 2)

    def change(number):
        half._numerator = 1 + number // 6

    assert agrees_or_refuses(lambda x: x * float(half), change)


@pytest.mark.parametrize("read", [gc.isenabled, gc.get_threshold, sys.gettrace])
def test_what_only_functions_of_the_interpreter_tell(read):
    message = refusal(lambda x: x * (2 if read() else 3), *[(candelabra.ones(2),)] * 6)
    assert f"{read.__name__}() " in message
    assert "test_python_state.py:" in message


def test_the_limit_of_recursion():
    assert "getrecursionlimit() " in refusal(lambda x: x * sys.getrecursionlimit(), *[(candelabra.ones(2),)] * 6)

    def deeper(count):
        try:
            return deeper(count + 1)
        except RecursionError:
            return count

    assert "RecursionError" in refusal(lambda x: x * deeper(0), *[(candelabra.ones(2),)] * 8)


def test_guards_that_call_python_in_several_threads():
    abstract = abc.ABCMeta("abstract", (), {})

    def function(x):
        return x * (2 if isinstance(ONE, abstract) else 3) * float(THIRD + ONE)

    compiled = candelabra.compile(function)
    for _ in range(5):
        compiled(candelabra.ones(4))
    assert is_replayed(compiled)
    wrong = []

    def work(number):
        for count in range(60):
            # The context is that of the thread.
            if count == 30:
                decimal.getcontext().prec = 3 + number
            x = candelabra.ones(4) + number
            if not compiled(x).equal(function(x)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    abstract.register(decimal.Decimal)
    assert compiled(candelabra.ones(1)).equal(function(candelabra.ones(1)))
