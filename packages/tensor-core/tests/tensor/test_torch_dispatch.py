"""``__torch_dispatch__``: subclasses and modes compute operators."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import pytest

import candelabra
from candelabra import Tensor
from candelabra.python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    is_in_torch_dispatch_mode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)


def unwrapped(value):
    if isinstance(value, Wrapped):
        return value.inner
    return type(value)(map(unwrapped, value)) if isinstance(value, (list, tuple)) else value


def wrapped(value):
    if isinstance(value, Tensor):
        return Wrapped(value)
    return tuple(map(wrapped, value)) if isinstance(value, tuple) else value


class Wrapped(Tensor):
    """A tensor that holds another, and logs the operators on it."""

    calls: list[str] = []
    __torch_function__ = candelabra._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        made = Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.overloadpacket.__name__)
        names = {name: unwrapped(value) for name, value in (kwargs or {}).items()}
        return wrapped(func(*unwrapped(args), **names))

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Wrapped(parts["inner"])


class Names(TorchDispatchMode):
    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def tensor():
    Wrapped.calls.clear()
    return Wrapped(candelabra.arange(6.0).reshape(2, 3))


def test_a_wrapper_has_a_geometry_and_no_memory(tensor):
    assert (tensor.shape, tensor.stride(), tensor.dtype) == ((2, 3), (3, 1), candelabra.float32)
    assert tensor.device == candelabra.device("cpu")
    assert not tensor.is_meta
    assert tensor.data_ptr() == 0
    assert repr(tensor).startswith("Wrapped(...")
    with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
        tensor.tolist()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda t: t + 1, "add"),
        (lambda t: 2 * t, "mul"),
        (lambda t: t.exp(), "exp"),
        (lambda t: candelabra.cat([t, t]), "cat"),
        (lambda t: candelabra.ones(2, 3) + t, "add"),
        (lambda t: t.sum(1), "sum"),
        (lambda t: t.clone(), "clone"),
        (lambda t: t.view(6), "view"),
    ],
)
def test_operators(tensor, call, name):
    made = call(tensor)
    assert type(made) is Wrapped
    assert Wrapped.calls == [name]
    assert made.inner.tolist() == call(tensor.inner).tolist()
    assert made.shape == made.inner.shape


def test_functions_made_of_operators(tensor):
    assert type(candelabra.linalg.vector_norm(tensor)) is Wrapped
    assert "linalg_vector_norm" in Wrapped.calls or Wrapped.calls


def test_defaults_are_left_out():
    seen = []

    class Arguments(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((args[1:], kwargs))
            return func(*args, **kwargs)

    t = candelabra.ones(2)
    with Arguments():
        candelabra.add(t, 1)
        candelabra.add(t, 1, alpha=2)
        candelabra.sum(t, 0, dtype=candelabra.float64)
    assert seen == [((1,), {}), ((1,), {"alpha": 2}), ((0,), {"dtype": candelabra.float64})]


def test_a_mode_sees_operators():
    t = candelabra.ones(2, 2)
    with Names() as mode:
        assert (t @ t + 1).tolist() == [[3, 3], [3, 3]]
        candelabra.zeros(2)
    t * 2
    assert mode.names == ["mm", "add", "zeros"]


def test_modes_are_nested():
    t = candelabra.ones(2)
    with Names() as outer, Names() as inner:
        t + 1
        assert _get_current_dispatch_mode() is inner
        with _disable_current_modes() as off:
            t * 2
        assert off == [outer, inner]
    assert inner.names == outer.names == ["add"]


def test_a_mode_is_of_one_thread():
    with Names() as mode:
        thread = threading.Thread(target=lambda: candelabra.ones(2))
        thread.start()
        thread.join()
    assert mode.names == []


def test_modes_come_before_classes(tensor):
    with Names() as mode:
        assert type(tensor + 1) is Wrapped
    assert mode.names == ["add"]  # off while it computes
    assert Wrapped.calls == ["add"]


def test_exceptions_and_refusals(tensor):
    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is candelabra.ops.aten.exp.default:
                raise ValueError("no exp")
            return NotImplemented

    t = candelabra.ones(2)
    with Refusing():
        with pytest.raises(ValueError, match="no exp"):
            t.exp()
        with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
            t + 1
    assert (t + 1).tolist() == [2, 2]


def test_the_base_mode_changes_nothing():
    with BaseTorchDispatchMode():
        assert candelabra.ones(2).tolist() == [1, 1]
        with pytest.raises(RuntimeError):
            candelabra.ones(2) + candelabra.ones(3)


def test_classes_without_a_handler():
    class Nothing(Tensor):
        pass

    with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
        Tensor._make_wrapper_subclass(Nothing, (2,))
    with pytest.raises(RuntimeError, match="no torch dispatch mode"):
        candelabra._C.pop_torch_dispatch_mode()


def test_traceable_subclasses(tensor):
    assert is_traceable_wrapper_subclass(tensor)
    assert not is_traceable_wrapper_subclass(tensor.inner)
    made = transform_subclass(tensor, lambda name, inner: inner * 2)
    assert made.inner.tolist() == (tensor.inner * 2).tolist()


class Aliasing(Wrapped):
    """A wrapper whose views share its storage, and whose in-place operators return it."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        names = {name: unwrapped(value) for name, value in (kwargs or {}).items()}
        out = func(*unwrapped(args), **names)
        out = tuple(map(cls, out)) if isinstance(out, (tuple, list)) else cls(out)
        return return_and_correct_aliasing(func, args, kwargs, out)


def test_views_of_a_wrapper_share_its_storage():
    whole = Aliasing(candelabra.arange(6.0).reshape(2, 3))
    for view in (whole.t(), whole[1:], whole.view(6), *whole.unbind(0)):
        assert view.untyped_storage()._cdata == whole.untyped_storage()._cdata
    assert whole.t().shape == (3, 2) and whole.t().stride() == (1, 3)
    apart = whole + 1
    assert apart.untyped_storage()._cdata != whole.untyped_storage()._cdata


def test_in_place_operators_of_a_wrapper_return_it():
    whole = Aliasing(candelabra.zeros(2))
    assert whole.add_(1) is whole
    assert whole.inner.tolist() == [1, 1]
    destination = Aliasing(candelabra.zeros(2))
    assert candelabra.add(whole, whole, out=destination) is destination
    assert destination.inner.tolist() == [2, 2]


def test_a_view_that_reaches_beyond_its_argument():
    small, large = Aliasing(candelabra.zeros(2)), Aliasing(candelabra.zeros(5))
    with pytest.raises(RuntimeError, match="reaches beyond the 8 bytes"):
        return_and_correct_aliasing(candelabra.ops.view, (small, [5]), {}, large)


class Slotted(Tensor):
    """A wrapper that holds the other tensor in a slot."""

    __slots__ = ["inner"]
    __torch_function__ = candelabra._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(value.inner if isinstance(value, Slotted) else value for value in args), **(kwargs or {}))


def test_detached_wrappers_keep_their_slots():
    held = candelabra.ones(2)
    wrapper = Tensor._make_wrapper_subclass(Slotted, held.shape, dtype=held.dtype, device=held.device)
    wrapper.inner = held
    assert wrapper._detached().inner is held


def test_make_subclass_takes_require_grad_by_name():
    made = Tensor._make_subclass(Slotted, candelabra.ones(2), require_grad=True)
    assert type(made) is Slotted and made.requires_grad
    with pytest.raises(TypeError, match="require_grad"):
        Tensor._make_subclass(Slotted, candelabra.ones(2), other=True)


class InSlot(Wrapped):
    """A wrapper whose value is in a slot."""

    __slots__ = ("value",)

    @staticmethod
    def __new__(cls, inner):
        made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.value = inner
        return made

    @property
    def inner(self):
        return self.value

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*unwrapped(args), **{name: unwrapped(value) for name, value in (kwargs or {}).items()})
        return cls(out) if isinstance(out, Tensor) else out


def test_a_number_is_read_by_the_class():
    one = InSlot(candelabra.tensor([2.5]))
    assert one.item() == 2.5
    assert bool(one) and float(one) == 2.5 and int(one) == 2
    with pytest.raises(RuntimeError, match=r"\.tolist\(\) is not supported for tensor subclasses"):
        one.tolist()


def test_copies_and_pickles_keep_slots():
    given = InSlot(candelabra.arange(3.0))
    for made in (copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        assert type(made) is InSlot
        assert made.value.tolist() == [0, 1, 2]
        assert made.value.data_ptr() != given.value.data_ptr()
        assert made.device == candelabra.device("cpu")


def test_a_copy_of_another_type_is_refused():
    class Bare(InSlot):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*unwrapped(args), **(kwargs or {}))

    with pytest.raises(RuntimeError, match="only works for subclass types that implement clone"):
        copy.deepcopy(Bare(candelabra.ones(2)))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda t: t.new_zeros(2, 1), [[0], [0]]),
        (lambda t: t.new_ones((2,)), [1, 1]),
        (lambda t: t.new_full((2,), 3), [3, 3]),
    ],
)
def test_tensors_like_a_wrapper_are_wrappers(make, expected):
    made = make(InSlot(candelabra.arange(3.0)))
    assert type(made) is InSlot
    assert made.value.tolist() == expected
    assert tuple(InSlot(candelabra.arange(3.0)).new_empty(4).value.shape) == (4,)


def test_assignments_by_a_mask_that_is_a_wrapper():
    given = InSlot(candelabra.arange(4.0))
    given[InSlot(candelabra.tensor([True, False, True, False]))] = 7
    assert given.value.tolist() == [7, 1, 7, 3]


def test_a_parameter_of_a_subclass_says_so():
    given = InSlot(candelabra.arange(2.0))
    given._is_param = True
    assert candelabra.printing.tensor_text(given, "...") == "Parameter(InSlot(...))"


def test_a_gradient_of_a_wrapper_may_be_on_the_device_that_it_stands_for():
    given = InSlot(candelabra.arange(2.0))
    given.grad = candelabra.ones(2)
    assert given.grad.tolist() == [1, 1]
    given._grad = None
    assert given.grad is None


def test_storages_take_weak_references():
    tensor = candelabra.ones(2)
    storage = tensor.untyped_storage()
    seen = weakref.ref(storage)
    assert seen() is storage
    del storage
    gc.collect()
    assert seen() is tensor.untyped_storage()
    del tensor
    assert seen() is None


def test_to_like_another_tensor_within_a_mode():
    x, other = candelabra.ones(2), candelabra.ones(3, dtype=candelabra.float64)
    with Names() as mode:
        assert x.to(other).dtype is candelabra.float64 and x.type_as(other).dtype is candelabra.float64
        assert x.to(int).dtype is candelabra.int64
    assert "eq" not in mode.names


# ---- what handlers are given, and what they return


class Overloads(TorchDispatchMode):
    def __init__(self):
        self.given = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.given.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x + 1, "add.Tensor"),
        (lambda x: x * x, "mul.Tensor"),
        (lambda x: candelabra.div(x, 2, rounding_mode="floor"), "div.Tensor_mode"),
        (lambda x: x == 1, "eq.Scalar"),
        (lambda x: x == x, "eq.Tensor"),
        (lambda x: x**2, "pow.Tensor_Scalar"),
        (lambda x: 2**x, "pow.Scalar"),
        (lambda x: x.sum(), "sum.default"),
        (lambda x: x.sum(1), "sum.dim_IntList"),
        (lambda x: x.mean(0), "mean.dim"),
        (lambda x: x.amax(), "amax.default"),
        (lambda x: x.prod(1), "prod.dim_int"),
        (lambda x: x.squeeze(0), "squeeze.dim"),
        (lambda x: x.clamp(0, 1), "clamp.default"),
        (lambda x: x.view(6), "view.default"),
        (lambda x: x.transpose(0, 1), "transpose.int"),
        (lambda x: x.masked_fill_(x > 1, 0), "masked_fill_.Scalar"),
        (lambda x: candelabra.abs(x, out=candelabra.empty(2, 3)), "abs.out"),
    ],
)
def test_a_handler_is_given_an_overload(call, name):
    x = candelabra.ones(2, 3)
    with Overloads() as mode:
        call(x)
    packet, _, overload = name.partition(".")
    assert mode.given[-1] is getattr(getattr(candelabra.ops.aten, packet), overload)


def test_an_overload_knows_its_operator():
    overload = candelabra.ops.aten.add_.Tensor
    assert overload.functional is candelabra.ops.add
    assert overload.schema == candelabra.ops.add_.schema
    with pytest.raises(AttributeError, match="no attribute 'elsewhere'"):
        _ = overload.elsewhere


class Counting(Tensor):
    called: list[object] = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.called.append(func)
        return super().__torch_dispatch__(func, types, args, kwargs)


def test_super_computes_plainly():
    Counting.called.clear()
    x = Counting(candelabra.ones(2))
    made = x + x
    assert Counting.called == [candelabra.ops.aten.add.Tensor]
    assert type(made) is Tensor
    assert made.tolist() == [2, 2]


def test_a_class_that_computes_operators_takes_over_no_functions():
    """Results are of the class that the handler returned."""
    made = candelabra.stack([Counting(candelabra.ones(2)), candelabra.zeros(2)])
    assert type(made) is Tensor
    assert not candelabra.overrides.has_torch_function((Counting(1),))


def test_results_that_are_no_tensors():
    class Wrong(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "arf"

    with pytest.raises(RuntimeError, match="Unable to cast Python instance of type str"):
        Wrong(1).neg()


def test_modes_have_plain_methods():
    class OfClass(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported"), OfClass():
        pass


def test_within_a_mode():
    class Infrastructure(Overloads):
        @classmethod
        def is_infra_mode(cls):
            return True

    assert not is_in_torch_dispatch_mode()
    with Infrastructure():
        assert is_in_torch_dispatch_mode()
        assert not is_in_torch_dispatch_mode(include_infra_modes=False)


def test_no_array_of_a_wrapper(tensor):
    with pytest.raises(RuntimeError, match=r"\.numpy\(\) is not supported for tensor subclasses"):
        tensor.numpy()
