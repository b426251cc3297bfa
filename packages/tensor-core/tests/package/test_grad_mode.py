"""no_grad and its relatives: as context managers, as decorators, nested, in generators and in
threads.
"""

from __future__ import annotations

import threading

import pytest

import candelabra as c


@pytest.fixture(autouse=True)
def recording():
    assert c.is_grad_enabled() and not c.is_inference_mode_enabled()
    yield
    assert c.is_grad_enabled() and not c.is_inference_mode_enabled()


def test_context_managers():
    with c.no_grad():
        assert not c.is_grad_enabled()
        with c.enable_grad():
            assert c.is_grad_enabled()
            with c.set_grad_enabled(False):
                assert not c.is_grad_enabled()
            assert c.is_grad_enabled()
        assert not c.is_grad_enabled()


def test_state_comes_back_after_an_exception():
    with pytest.raises(KeyError), c.no_grad():
        raise KeyError
    assert c.is_grad_enabled()


def test_one_instance_inside_itself():
    off = c.no_grad()
    with off:
        with off:
            assert not c.is_grad_enabled()
        assert not c.is_grad_enabled()
    assert c.is_grad_enabled()


DECORATORS = {
    "no_grad()": lambda f: c.no_grad()(f),
    "no_grad": lambda f: c.no_grad(f),
    "set_grad_enabled": lambda f: c.set_grad_enabled(False)(f),
    "inference_mode()": lambda f: c.inference_mode()(f),
    "inference_mode": lambda f: c.inference_mode(f),
}


@pytest.mark.parametrize("decorate", DECORATORS.values(), ids=DECORATORS)
def test_decorators(decorate):
    @decorate
    def inside(x, *, y):
        """What it says."""
        return x, y, c.is_grad_enabled() and not c.is_inference_mode_enabled()

    assert inside(1, y=2) == (1, 2, False)
    assert inside.__name__ == "inside" and inside.__doc__ == "What it says."
    assert c.is_grad_enabled()


def test_set_grad_enabled_as_a_function():
    c.set_grad_enabled(False)
    assert not c.is_grad_enabled()
    c.set_grad_enabled(True)
    assert c.is_grad_enabled()


def test_set_grad_enabled_as_a_decorator_changes_nothing_itself():
    with c.no_grad():

        @c.set_grad_enabled(True)
        def inside():
            return c.is_grad_enabled()

        assert not c.is_grad_enabled()
        assert inside()


def test_generators_hold_the_state_only_while_they_run():
    @c.no_grad()
    def numbers():
        received = []
        try:
            for i in range(3):
                assert not c.is_grad_enabled()
                received.append((yield i))
        except KeyError:
            yield "caught"
        return received

    generator = numbers()
    assert next(generator) == 0 and c.is_grad_enabled()
    assert generator.send("a") == 1 and c.is_grad_enabled()
    assert generator.throw(KeyError) == "caught" and c.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == ["a"]
    assert list(numbers()) == [0, 1, 2]


def test_a_closed_generator_cleans_up():
    closed = []

    @c.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            closed.append(c.is_grad_enabled())

    generator = numbers()
    next(generator)
    generator.close()
    assert closed == [False]


def test_threads_have_states_of_their_own():
    seen = []
    with c.no_grad():
        thread = threading.Thread(target=lambda: seen.append(c.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode():
    with c.inference_mode():
        assert c.is_inference_mode_enabled()
        with c.inference_mode(False):
            assert not c.is_inference_mode_enabled()
        assert c.is_inference_mode_enabled()


def test_inference_tensors_are_changed_in_inference_mode_only():
    with c.inference_mode():
        x = c.ones(3)
        x.add_(1)
        x[0] = 5
    for change in (lambda: x.add_(1), lambda: x.fill_(0), lambda: x.__setitem__(0, 1), lambda: x.copy_(c.zeros(3))):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            change()
    assert x.tolist() == [5, 2, 2] and (x + 1).tolist() == [6, 3, 3]
    y = x.clone()
    y.add_(1)
    assert y.tolist() == [6, 3, 3]


def test_a_block_may_be_entered_inside_of_itself_to_any_depth():
    block = c.no_grad()
    with c.enable_grad():
        for _ in range(100):
            block.__enter__()
            assert not c.is_grad_enabled()
        for number in range(100):
            block.__exit__(None, None, None)
            assert c.is_grad_enabled() == (number == 99)
        with pytest.raises(RuntimeError, match="not entered"):
            block.__exit__(None, None, None)


def test_a_subclass_of_no_grad_is_one():
    class Quiet(c.no_grad):
        pass

    with Quiet() as made:
        assert made is None and not c.is_grad_enabled()

    @Quiet()
    def inside():
        return c.is_grad_enabled()

    assert not inside()
    with pytest.raises(TypeError):
        c.no_grad(1, 2)


@pytest.mark.parametrize("mode", [c.no_grad, c.inference_mode])
def test_a_decorated_class_is_made_within_the_mode(mode):
    with pytest.warns(FutureWarning, match="^Decorating classes is deprecated"):

        @mode()
        class Model:
            def __init__(self):
                self.recorded = c.is_grad_enabled()

            def forward(self):
                return c.is_grad_enabled()

    assert not Model().recorded
    assert Model().forward()


def test_a_change_that_fails_is_not_counted():
    x = c.ones(2)
    with pytest.raises(RuntimeError):
        x.add_(c.ones(3))
    assert x._version == 0
    x.add_(1)
    assert x._version == 1


def test_inference_tensors_are_changed_in_their_mode_only():
    with c.inference_mode():
        made = c.ones(2)
        made.add_(1)
    with pytest.raises(RuntimeError, match=r"add_\(\): Inplace update to inference tensor"):
        made.add_(1)
    assert made.tolist() == [2.0, 2.0]
