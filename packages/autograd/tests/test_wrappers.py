"""Gradients of tensors whose class computes operators by ``__torch_dispatch__``."""

from __future__ import annotations

import candelabra
from candelabra import Tensor


def unwrapped(value):
    if isinstance(value, Wrapped):
        return value.inner
    return type(value)(map(unwrapped, value)) if isinstance(value, (list, tuple)) else value


class Wrapped(Tensor):
    """A tensor that holds another. Plain tensors must not come among its operators' arguments."""

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
        given = [*args, *(kwargs or {}).values()]
        assert not any(isinstance(each, Tensor) and not isinstance(each, Wrapped) for each in given), func.name
        out = func(*unwrapped(args), **{name: unwrapped(value) for name, value in (kwargs or {}).items()})
        return args[0] if func.functional is not None else cls(out) if isinstance(out, Tensor) else tuple(map(cls, out))

    def new_zeros(self, size):
        return Wrapped(candelabra.zeros(size, dtype=self.dtype))


def leaf():
    return Wrapped(candelabra.arange(6.0).reshape(2, 3)).requires_grad_()


def test_gradients_of_parts():
    x = leaf()
    (x[:, 1:].sum() + x[0].sum() + x.narrow(1, 0, 1).exp().sum()).backward()
    assert type(x.grad) is Wrapped
    expected = candelabra.arange(6.0).reshape(2, 3).requires_grad_()
    (expected[:, 1:].sum() + expected[0].sum() + expected.narrow(1, 0, 1).exp().sum()).backward()
    assert x.grad.inner.tolist() == expected.grad.tolist()


def test_gradients_of_parts_of_intermediates():
    x = leaf()
    y = x * 2
    (y[:1].sum() + y[1:, :2].sum()).backward()
    assert x.grad.inner.tolist() == [[2, 2, 2], [2, 2, 0]]


def test_a_leaf_has_a_gradient_of_its_own():
    """The wrapped tensor of a gradient may be another's, so that it is copied."""
    shared = candelabra.ones(2, 3)

    class Same(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return Wrapped(x.inner * 1)

        @staticmethod
        def backward(ctx, grad):
            return Wrapped(shared)

    x = leaf()
    for count in (1.0, 2.0):
        Same.apply(x).sum().backward()
        assert x.grad.inner.tolist() == [[count] * 3] * 2
    assert shared.tolist() == [[1.0] * 3] * 2


def test_a_gradient_that_is_expanded():
    x = leaf()
    x.expand(4, 2, 3).sum(2).mean().backward()
    x.sum().backward()
    assert type(x.grad) is Wrapped and candelabra.allclose(x.grad.inner, candelabra.full((2, 3), 1.5))


def test_vectorized_jacobians_see_batches_of_plain_tensors():
    class Plain(Wrapped):
        __torch_function__ = candelabra._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            out = func(*unwrapped(args), **{name: unwrapped(value) for name, value in (kwargs or {}).items()})
            return cls(out) if isinstance(out, Tensor) else out

    given = candelabra.tensor([0.5, 1.0, 2.0])
    jacobian = candelabra.autograd.functional.jacobian
    made = jacobian(lambda x: x.exp() * 2, Plain(given), vectorize=True)
    expected = jacobian(lambda x: x.exp() * 2, given)
    assert type(made) is Plain
    assert made.inner.tolist() == expected.tolist()
