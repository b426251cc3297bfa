"""``__torch_function__``: subclasses, foreign classes and modes take over the functions of the
package; candelabra.overrides.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import threading

import pytest

import candelabra
from candelabra import Tensor, overrides
from candelabra.overrides import TorchFunctionMode, resolve_name


class Plain(Tensor):
    """A subclass without an implementation of its own."""


class Logged(Tensor):
    calls: list[str] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Disabled(Tensor):
    __torch_function__ = candelabra._C._disabled_torch_function_impl


class Foreign:
    """No tensor; it answers with what it was called with."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


class Refusing:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.fixture
def logged():
    Logged.calls.clear()
    return candelabra.arange(4.0).as_subclass(Logged)


# ---- subclasses


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t + 1,
        lambda t: 1 - t,
        lambda t: t == t,
        lambda t: -t,
        lambda t: t[0],
        lambda t: t[t > 0],
        lambda t: t.T,
        lambda t: t.sum(),
        lambda t: t.reshape(2, 2),
        lambda t: t.float(),
        lambda t: t.data,
        lambda t: candelabra.stack([t, t]),
        lambda t: candelabra.cat((candelabra.ones(1), t)),
        lambda t: candelabra.where(t > 0, t, 0.0),
        lambda t: candelabra.add(candelabra.ones(4), other=t),
        lambda t: candelabra.einsum("i,i->i", t, t),
        lambda t: candelabra.zeros_like(t),
        lambda t: candelabra.linalg.vector_norm(t),
        lambda t: candelabra.fft.fft(t),
        lambda t: candelabra.special.sinc(t),
        lambda t: t.split(2)[0],
        lambda t: t.max(0).values,
        lambda t: next(iter(t)),
        lambda t: t.add_(1),
    ],
)
def test_results_are_of_the_subclass(call):
    assert type(call(candelabra.arange(4.0).as_subclass(Plain))) is Plain


def test_results_that_are_no_tensors():
    t = candelabra.ones(2, 3).as_subclass(Plain)
    assert t.shape == (2, 3)
    assert t.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert (len(t), t.dim(), t[0, 0].item(), bool(t[0, 0])) == (2, 2, 1.0, True)
    assert type(t.max(0)).__name__ == "max"
    assert repr(t).startswith("Plain(")


def test_what_an_implementation_sees(logged):
    candelabra.stack([logged, logged])
    logged + 1
    logged.shape
    logged.size()
    len(logged)
    logged[0] = 1
    logged.requires_grad = False
    candelabra.linalg.norm(logged)
    assert Logged.calls == ["stack", "add", "__get__", "size", "__len__", "__setitem__", "__set__", "norm"]


def test_in_place_and_out(logged):
    assert logged.mul_(2) is logged
    plain = candelabra.empty(4)
    assert candelabra.add(logged, 1, out=plain) is not None
    assert plain.tolist() == [1, 3, 5, 7]
    assert type(plain) is Tensor


def test_subclasses_are_asked_before_their_bases():
    class Inner(Logged):
        pass

    types = []

    class Outer(Inner):
        @classmethod
        def __torch_function__(cls, func, types_, args=(), kwargs=None):
            types.append(types_)
            return super().__torch_function__(func, types_, args, kwargs)

    made = candelabra.add(candelabra.ones(1).as_subclass(Inner), candelabra.ones(1).as_subclass(Outer))
    assert types == [(Outer, Inner)]
    assert type(made) is Outer


def test_classes_that_do_not_know_one_another():
    class Other(Tensor):
        pass

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'candelabra.add'"):
        candelabra.add(candelabra.ones(1).as_subclass(Plain), candelabra.ones(1).as_subclass(Other))


def test_disabled_implementation():
    t = candelabra.ones(2).as_subclass(Disabled)
    assert type(t + 1) is Tensor
    assert not overrides.has_torch_function((t,))


def test_contexts(logged):
    with overrides.DisableTorchFunctionSubclass():
        assert type(logged + 1) is Tensor
    assert type(logged + 1) is Logged
    with overrides.DisableTorchFunction(), overrides._enable_torch_function():
        assert type(logged + 1) is Logged
    assert Logged.calls == ["add", "add"]


def test_copies_and_pickles():
    t = candelabra.ones(2).as_subclass(Plain)
    t.note = "x"
    for made in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert (type(made), made.note) == (Plain, "x")


def test_a_subclass_with_slots():
    class Slotted(Tensor):
        __slots__ = ("extra",)

    t = candelabra.ones(2).as_subclass(Slotted)
    t.extra = 1
    assert type(t + 1) is Slotted
    assert t.extra == 1


def test_as_subclass_shares_memory():
    t = candelabra.ones(2)
    made = t.as_subclass(Plain)
    made[0] = 5
    assert t.tolist() == [5, 1]
    assert type(made.as_subclass(Tensor)) is Tensor
    with pytest.raises(TypeError, match="expected a subclass of Tensor"):
        t.as_subclass(int)


# ---- foreign classes


def test_functions_of_foreign_objects():
    x = Foreign()
    func, types, args, kwargs = candelabra.stack([candelabra.ones(1), x], dim=0)
    assert (func, types, kwargs) == (candelabra.stack, (Foreign,), {"dim": 0})
    assert args[0][1] is x
    for call, name in [
        (lambda: candelabra.cat((x,)), "cat"),
        (lambda: candelabra.add(candelabra.ones(1), x), "add"),
        (lambda: candelabra.ones(1) + x, "add"),
        (lambda: candelabra.mean(x), "mean"),
        (lambda: candelabra.einsum("i", x), "einsum"),
        (lambda: candelabra.linalg.inv(x), "inv"),
        (lambda: candelabra.where(candelabra.tensor(True), x, 1), "where"),
        (lambda: candelabra.ones(1).matmul(x), "matmul"),
        (lambda: candelabra.allclose(x, x), "allclose"),
    ]:
        assert call()[0].__name__ == name


def test_foreign_indices_and_values():
    t, foreign = candelabra.arange(6).reshape(2, 3), Foreign()
    assert t[foreign] == (Tensor.__getitem__, (Foreign,), (t, foreign), {})
    key = (slice(None), foreign)
    assert t[key] == (Tensor.__getitem__, (Foreign,), (t, key), {})
    assert t[0, foreign][2] == (t, (0, foreign))
    assert candelabra.empty((2, foreign))[2] == ((2, foreign),)
    assert t.expand([2, 2, foreign])[2][1] == [2, 2, foreign]
    seen = []

    class Watching:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, args[1:]))

    watching = Watching()
    t[watching] = 1
    t[0] = watching
    assert seen == [(Tensor.__setitem__, (watching, 1)), (Tensor.__setitem__, (0, watching))]
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError, match="__getitem__"):
        t[Refusing()]
    with pytest.raises(IndexError, match="only integers"):
        t[object()]


def test_assert():
    candelabra._assert(True, "fine")
    with pytest.raises(AssertionError, match="not fine"):
        candelabra._assert(candelabra.tensor(False), "not fine")
    foreign = Foreign()
    assert candelabra._assert(foreign, "text")[2] == (foreign, "text")


def test_all_refuse():
    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented.*\n\n.*Refusing"):
        candelabra.exp(Refusing())
    assert candelabra.add(Refusing(), Foreign())[1] == (Refusing, Foreign)


def test_exceptions_pass():
    class Raising:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    with pytest.raises(KeyError, match="exp"):
        candelabra.exp(Raising())
    with pytest.raises(KeyError, match="mean"):
        candelabra.mean(Raising())


def test_objects_that_do_not_take_part():
    with pytest.raises(TypeError):
        candelabra.exp(object())
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        candelabra.vander([1, 2])


# ---- modes


class Names(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_all_calls():
    with Names() as mode:
        x = candelabra.zeros(3)
        (x + 1).sum()
        candelabra.einsum("i,i", x, x)
        x.shape
        x[0]
        candelabra.tensor([1])
    x * 2
    assert mode.names == [
        "candelabra.zeros", "candelabra.add", "candelabra.sum", "candelabra.einsum", "candelabra.Tensor.shape.__get__",
        "candelabra.Tensor.__getitem__", "candelabra.tensor",
    ]  # fmt: skip


def test_modes_are_nested():
    with Names() as outer, Names() as inner:
        candelabra.ones(2)
        assert overrides._get_current_function_mode() is inner
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        with overrides._pop_mode_temporarily():
            candelabra.zeros(2)
    assert inner.names == ["candelabra.ones"]
    assert outer.names == ["candelabra.ones", "candelabra.zeros"]


def test_a_mode_is_of_one_thread():
    with Names() as mode:
        thread = threading.Thread(target=lambda: candelabra.ones(2))
        thread.start()
        thread.join()
    assert mode.names == []


def test_a_mode_may_change_results_and_raise():
    class Ones(overrides.BaseTorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is candelabra.zeros:
                return candelabra.ones(*args, **(kwargs or {}))
            if func is candelabra.exp:
                raise ValueError("no exp")
            return super().__torch_function__(func, types, args, kwargs)

    with Ones():
        assert candelabra.zeros(2).tolist() == [1, 1]
        with pytest.raises(ValueError, match="no exp"):
            candelabra.exp(candelabra.zeros(2))
        assert candelabra.zeros(1).tolist() == [1]


def test_modes_come_before_classes(logged):
    with Names() as mode:
        assert type(logged + 1) is Logged
    assert mode.names == ["candelabra.add"]
    assert Logged.calls == ["add"]


def test_a_mode_that_does_not_implement():
    class Nothing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Nothing():
        assert candelabra.exp(Foreign())[1] == (Foreign,)
        with pytest.raises(TypeError, match="mode object"):
            candelabra.ones(2)


def test_leaving_without_entering():
    with pytest.raises(RuntimeError, match="no torch function mode"):
        candelabra._C.pop_torch_function_mode()


# ---- functions of a program


def test_wrap_torch_function():
    @overrides.wrap_torch_function(lambda a: (a,))
    def plus_one(a):
        return a + 1

    assert plus_one(1) == 2
    func, types, _, kwargs = plus_one(Foreign())
    assert (func, types, kwargs) == (plus_one, (Foreign,), {})


def test_handle_torch_function(logged):
    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b=b)
        return a * b + 1

    assert type(scaled(logged, 2)) is Logged
    assert Logged.calls == ["scaled"]
    with pytest.raises(TypeError, match="no implementation found for 'scaled'"):
        overrides.handle_torch_function(scaled, (1,), 1, 2)


def test_redispatch_function():
    seen = []

    class Redispatching(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    made = scaled(candelabra.tensor([3.0]).as_subclass(Redispatching), candelabra.tensor([4.0]))
    assert (made.item(), seen) == (13.0, ["scaled", "mul"])


def test_questions(logged):
    assert overrides.has_torch_function_unary(logged)
    assert overrides.has_torch_function_variadic(1, logged)
    assert not overrides.has_torch_function((candelabra.ones(1), 1))
    assert overrides.is_tensor_like(Foreign())
    assert overrides.is_tensor_like(candelabra.ones(1))
    assert not overrides.is_tensor_like(1)
    assert overrides._get_overloaded_args([1, logged, logged]) == [logged]


# ---- lists of functions


def test_lists():
    overridable = overrides.get_overridable_functions()
    assert candelabra.add in overridable[candelabra]
    assert candelabra.linalg.norm in overridable[candelabra.linalg]
    assert Tensor.size in overridable[Tensor]
    ignored = overrides.get_ignored_functions()
    assert {candelabra.zeros, candelabra.tensor, candelabra.manual_seed} <= ignored
    testing = overrides.get_testing_overrides()
    assert not ignored & set(testing)
    assert {candelabra.hstack, candelabra.atleast_1d, candelabra.sym_max, Tensor._base.__get__} <= set(testing)
    assert list(inspect.signature(testing[candelabra.add]).parameters) == ["input", "other", "alpha"]
    assert list(inspect.signature(testing[candelabra.linalg.norm]).parameters)[:2] == ["A", "ord"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (candelabra.add, "candelabra.add"),
        (candelabra.linalg.norm, "candelabra.linalg.norm"),
        (Tensor.size, "candelabra.Tensor.size"),
        (Tensor.shape.__get__, "candelabra.Tensor.shape.__get__"),
        (Tensor.requires_grad.__set__, "candelabra.Tensor.requires_grad.__set__"),
        (len, None),
    ],
)
def test_resolve_name(function, name):
    assert resolve_name(function) == name


def test_every_function_asks():
    """Every function that is listed as overridable is."""
    quiet = {"__torch_function__"}
    missing = []
    for function in overrides.get_testing_overrides():
        if getattr(function, "__name__", "") in quiet or getattr(function, "__name__", "") in ("__get__", "__set__"):
            continue
        if isinstance(function, type(Tensor.size)) or "wrapper" in type(function).__name__:
            continue  # of Tensor alone
        try:
            found = function(Foreign())
        except Exception as error:
            found = error
        if not (isinstance(found, tuple) and found[1] == (Foreign,)):
            missing.append((resolve_name(function), found))
    assert missing == []


def test_an_index_of_a_subclass_is_asked():
    class Answering(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    index = candelabra.tensor([0]).as_subclass(Answering)
    plain = candelabra.tensor([0]).as_subclass(Plain)
    assert type(candelabra.ones(2)[plain]) is Plain
    assert candelabra.ones(2)[index] is Tensor.__getitem__
    assert candelabra.ones(2, 2)[0, index] is Tensor.__getitem__


def test_methods_of_subclasses_are_asked():
    class Answering(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1

    x = candelabra.ones(2).as_subclass(Answering)
    assert (~x, x._is_view()) == (-1, -1)
    assert list(inspect.signature(Tensor.__complex__).parameters) == ["self"]


def test_a_mode_is_no_class_method():
    class Mode(overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"), Mode():
        pass


def test_is_tensor_method_or_property():
    assert overrides.is_tensor_method_or_property(Tensor.size)
    assert overrides.is_tensor_method_or_property(Tensor.shape.__get__)
    assert not overrides.is_tensor_method_or_property(candelabra.zeros)


@pytest.mark.parametrize("give", [lambda *o: o, lambda *o: (o,), lambda *o: (list(o),)])
def test_einsum_unpacks_its_operands_first(give):
    class Seen:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function, args

    other, ones = Seen(), candelabra.ones(2)
    assert candelabra.einsum("i,i->", *give(other, ones)) == (candelabra.einsum, ("i,i->", other, ones))
    assert candelabra.einsum("i,i->", *give(ones, ones)).item() == 2.0


def test_explicit_binding_and_call_ask_the_class() -> None:
    class Answering(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1

    values = candelabra.ones(2, 2).as_subclass(Answering)
    assert Tensor.chunk.__get__(values)(2) == -1
    assert Tensor.chunk.__call__(values, 2) == -1
