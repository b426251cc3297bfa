"""Sample arguments for every differentiable operator of the catalogue.

``samples(name, dtype)`` returns calls as pairs of positional and keyword arguments. Floating-point
tensors made by ``Draw`` require grad. Values keep a distance from kinks and poles, unless a sample
tests those.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy
import samples_activation
import samples_attention
import samples_joining
import samples_linalg
import samples_loss
import samples_recurrent
import samples_resampling

import candelabra

COMPLEX = (candelabra.complex64, candelabra.complex128)


class Draw:
    """Makes tensors, the same ones for an operator each time."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.random = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.dtype = dtype
        self.complex = dtype in COMPLEX

    def array(self, shape: tuple[int, ...], low: float, high: float) -> Any:
        return self.random.uniform(low, high, shape)

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0, grad: bool = True) -> Any:
        values = self.array(shape, low, high)
        if self.complex:
            values = values + 1j * self.array(shape, low, high)
        return candelabra.tensor(values, dtype=self.dtype, requires_grad=grad)

    def positive(self, *shape: int, low: float = 0.3, high: float = 2.0) -> Any:
        return self(*shape, low=low, high=high)

    def away(self, *shape: int, margin: float = 0.2, high: float = 2.0) -> Any:
        """Return values of both signs, at least `margin` from zero."""
        values = self.array(shape, margin, high) * self.random.choice([-1.0, 1.0], shape)
        if self.complex:
            values = values + 1j * self.array(shape, margin, high) * self.random.choice([-1.0, 1.0], shape)
        return candelabra.tensor(values, dtype=self.dtype, requires_grad=True)

    def distinct(self, *shape: int) -> Any:
        """Return values that are at least 0.1 apart."""
        count = int(numpy.prod(shape))
        values = (self.random.permutation(count) * 0.17 - 1.03).reshape(shape)
        return candelabra.tensor(values, dtype=self.dtype, requires_grad=True)

    def gaps(self, *shape: int) -> Any:
        """Return a non-contiguous leaf."""
        whole = self(*shape[:-1], 2 * shape[-1], grad=False)
        return whole[..., ::2].detach().requires_grad_()

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        dtype = candelabra.float64 if self.dtype in (candelabra.float64, candelabra.complex128) else candelabra.float32
        return candelabra.tensor(self.array(shape, low, high), dtype=dtype, requires_grad=True)

    def indices(self, high: int, *shape: int, unique: bool = False) -> Any:
        if unique:
            return candelabra.tensor(self.random.permutation(high)[: shape[0]])
        return candelabra.tensor(self.random.integers(0, high, shape))

    def mask(self, *shape: int) -> Any:
        return candelabra.tensor(self.random.random(shape) < 0.5)


Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*arguments: Any, **keywords: Any) -> Call:
    return arguments, keywords


def _unary(make: str = "__call__", **options: Any) -> Any:
    def sampler(d: Draw) -> list[Call]:
        def one(*shape: int) -> Any:
            return getattr(d, make)(*shape, **options)

        square = one(3, 2).detach().t().requires_grad_()
        return [call(one(3)), call(one(2, 3)), call(one()), call(square)]

    return sampler


def _binary(
    second: str = "__call__", first: str = "__call__", number: Any = 1.5, left: Any = 1.5, **options: Any
) -> Any:
    def sampler(d: Draw) -> list[Call]:
        def a(*shape: int) -> Any:
            return getattr(d, first)(*shape, **options)

        def b(*shape: int) -> Any:
            return getattr(d, second)(*shape, **options)

        calls = [
            call(a(2, 3), b(2, 3)),
            call(a(2, 3), b(3)),
            call(a(3), b(2, 1)),
            call(a(), b(2)),
            call(a(2, 1), b(1, 3)),
            call(a(2), b()),
        ]
        calls.append(call(a(3, 2).detach().t().requires_grad_(), b(2, 3)))
        if number is not None:
            calls.append(call(a(2, 3), number))
        if left is not None:
            calls.append(call(left, b(2, 3)))
        return calls

    return sampler


def _extrema(d: Draw) -> list[Call]:
    # Offset from the grid of distinct() by about half a step.
    other = (d.distinct(3) + 0.08).detach().requires_grad_()
    return [call(d.distinct(2, 3), other), call(d.distinct(2, 3), (d.distinct(2, 1) - 0.08).detach().requires_grad_())]


def _reduction(make: str = "__call__", keywords: tuple[dict[str, Any], ...] = ({},), **options: Any) -> Any:
    def sampler(d: Draw) -> list[Call]:
        def one(*shape: int) -> Any:
            return getattr(d, make)(*shape, **options)

        calls = []
        for extra in keywords:
            calls += [
                call(one(2, 3), **extra), call(one(2, 3), dim=1, **extra), call(one(2, 3, 2), dim=[0, -1], keepdim=True, **extra),
                call(one(3, 2).detach().t().requires_grad_(), dim=(0,), **extra),
            ]  # fmt: skip
            calls.append(call(one(), **extra))
        return calls

    return sampler


def _single_dim(make: str = "__call__", **options: Any) -> Any:
    def sampler(d: Draw) -> list[Call]:
        def one(*shape: int) -> Any:
            return getattr(d, make)(*shape, **options)

        return [
            call(one(2, 3), 1),
            call(one(2, 3), -2),
            call(one(3), 0),
            call(one(3, 2).detach().t().requires_grad_(), 1),
        ]

    return sampler


def _prod(d: Draw) -> list[Call]:
    one_zero = candelabra.tensor([[1.0, 0.0, 3.0], [2.0, 0.5, 1.5]], dtype=d.dtype, requires_grad=True)
    two_zeros = candelabra.tensor([[1.0, 0.0, 0.0], [2.0, 0.5, 0.0]], dtype=d.dtype, requires_grad=True)
    return [
        call(d.away(2, 3)), call(d.away(2, 3), 1), call(d.away(2, 3), 0, True), call(one_zero), call(one_zero.detach().requires_grad_(), 1),
        call(two_zeros, 1), call(two_zeros.detach().requires_grad_(), 0, True), call(d.away()),
    ]  # fmt: skip


def _cumprod(d: Draw) -> list[Call]:
    zeros = candelabra.tensor([[1.0, 0.0, 3.0, 0.0], [2.0, 0.5, 1.5, 1.0]], dtype=d.dtype, requires_grad=True)
    return [call(d.away(3), 0), call(d.away(2, 3), 1), call(zeros, 1), call(zeros.detach().requires_grad_(), 0)]


def _var(d: Draw) -> list[Call]:
    return [
        call(d(2, 3)), call(d(2, 3), 1), call(d(2, 3), (0, 1), correction=0, keepdim=True), call(d(4, 3), [0], correction=2),
        call(d(3, 2).detach().t().requires_grad_(), 1),
    ]  # fmt: skip


def _vector_norm(d: Draw) -> list[Call]:
    calls = []
    for ord in (2, 1, 3, 0.5, float("inf"), -float("inf"), -1, 0, 4.5):
        calls += [call(d.away(2, 3), ord), call(d.away(2, 3), ord, 1), call(d.away(3, 2), ord, (0, 1), True)]
    return calls


def _clamp(d: Draw) -> list[Call]:
    return [
        call(d.distinct(2, 3), -0.5, 0.5), call(d.distinct(4), 0.1), call(d.distinct(4), None, 0.1),
        call(d(2, 3), d(3, low=-3, high=-2.5), d(2, 1, low=2.5, high=3)), call(d(2, 3), d(3, low=2.2, high=3), None),
        call(d(2, 3), None, d(3, low=-3, high=-2.2)), call(d(2, 3, low=2.1, high=3), d(3, low=0, high=1), d(3, low=-1, high=-0.5)),
    ]  # fmt: skip


def _lerp(d: Draw) -> list[Call]:
    return [
        call(d(2, 3), d(2, 3), d(2, 3)),
        call(d(2, 3), d(3), d(2, 1)),
        call(d(2, 3), d(3), 0.3),
        call(d(), d(2), d()),
    ]


def _addcmul(d: Draw) -> list[Call]:
    return [
        call(d(2, 3), d.away(2, 3), d.away(2, 3)),
        call(d(3), d.away(2, 3), d.away(2, 1), value=0.7),
        call(d(2, 2), d.away(), d.away(2), value=2),
    ]


def _pow(d: Draw) -> list[Call]:
    base = d.positive(2, 3)
    calls = [
        call(base, d(2, 3)),
        call(d.positive(3), d(2, 1)),
        call(2.5, d(2, 3)),
        call(d.positive(3), 2.5),
        call(d.away(3), 2),
        call(d.away(3), 3),
    ]
    calls += [call(d.away(3), -1), call(d(3), 1), call(d(3), 0), call(d.positive(), d()), call(d.positive(2), 0.5)]
    return calls


def _where(d: Draw) -> list[Call]:
    return [
        call(d.mask(2, 3), d(2, 3), d(2, 3)),
        call(d.mask(2, 3), d(3), d(2, 1)),
        call(d.mask(3), 1.5, d(2, 3)),
        call(d.mask(2, 1), d(), 2.0),
    ]


def _gather(d: Draw) -> list[Call]:
    return [
        call(d(3, 4), 1, d.indices(4, 3, 2)),
        call(d(3, 4), 0, d.indices(3, 2, 4)),
        call(d(3, 4), -1, d.indices(4, 2, 5)),
        call(d(4), 0, d.indices(4, 6)),
    ]


def _scatter(d: Draw) -> list[Call]:
    unique = candelabra.tensor(numpy.argsort(d.random.random((3, 4)), axis=1)[:, :2])
    return [
        call(d(3, 4), 1, unique, d(3, 2)),
        call(d(3, 4), 1, unique, 2.5),
        call(d(3, 4), 1, unique, d(3, 5)),
        call(d(4), 0, d.indices(4, 3, unique=True), d(3)),
    ]


def _scatter_add(d: Draw) -> list[Call]:
    return [
        call(d(3, 4), 1, d.indices(4, 3, 2), d(3, 2)),
        call(d(3, 4), 0, d.indices(3, 2, 4), d(5, 4)),
        call(d(4), 0, d.indices(4, 6), d(6)),
    ]


def _index_select(d: Draw) -> list[Call]:
    return [call(d(3, 4), 0, d.indices(3, 5)), call(d(3, 4), 1, d.indices(4, 2)), call(d(3), -1, d.indices(3, 4))]


def _index_add(d: Draw) -> list[Call]:
    return [
        call(d(3, 4), 0, d.indices(3, 2), d(2, 4)),
        call(d(3, 4), 1, d.indices(4, 5), d(3, 5), alpha=0.5),
        call(d(3), 0, d.indices(3, 4), d(4)),
    ]


def _index_copy(d: Draw) -> list[Call]:
    return [
        call(d(3, 4), 0, d.indices(3, 2, unique=True), d(2, 4)),
        call(d(3, 4), 1, d.indices(4, 3, unique=True), d(3, 3)),
    ]


def _index_fill(d: Draw) -> list[Call]:
    return [call(d(3, 4), 0, d.indices(3, 2), 1.5), call(d(3, 4), -1, d.indices(4, 2), 0)]


def _index(d: Draw) -> list[Call]:
    return [
        call(d(3, 4), [d.indices(3, 5)]), call(d(3, 4), [d.indices(3, 2), d.indices(4, 2)]), call(d(3, 4), [None, d.indices(4, 2, 2)]),
        call(d(3, 4, 2), [d.indices(3, 2), None, d.indices(2, 2)]), call(d(3), [candelabra.tensor([True, False, True])]),
    ]  # fmt: skip


def _index_put(d: Draw) -> list[Call]:
    unique = d.indices(3, 2, unique=True)
    return [
        call(d(3, 4), [unique], d(2, 4)), call(d(3, 4), [unique], d(4)), call(d(3, 4), [d.indices(3, 5)], d(5, 4), True),
        call(d(3, 4), [None, d.indices(4, 2, unique=True)], d(3, 2)), call(d(3, 4), [unique, d.indices(4, 2)], d()),
        call(d(3), [candelabra.tensor([True, False, True])], d(2)),
    ]  # fmt: skip


def _masked_fill(d: Draw) -> list[Call]:
    return [call(d(2, 3), d.mask(2, 3), 1.5), call(d(2, 3), d.mask(3), d()), call(d(3), d.mask(2, 3), 0.0)]


def _masked_scatter(d: Draw) -> list[Call]:
    return [call(d(2, 3), d.mask(2, 3), d(6)), call(d(2, 3), d.mask(3), d(2, 4))]


def _linear(d: Draw) -> list[Call]:
    return [
        call(d(4, 3), d(2, 3), d(2)), call(d(2, 2, 3), d(2, 3)), call(d(3), d(2, 3), d(2)), call(d(2, 2, 3), d(4, 3), d(4)), call(d(3), d(2, 3)),
        call(d.gaps(4, 3), d.gaps(2, 3)),
    ]  # fmt: skip


def _addmm(d: Draw) -> list[Call]:
    return [
        call(d(2, 4), d(2, 3), d(3, 4)), call(d(4), d(2, 3), d(3, 4), beta=0.5, alpha=2), call(d(2, 1), d(2, 3), d(4, 3).detach().t().requires_grad_()),
        call(d(), d(2, 3), d(3, 4), alpha=0.3),
    ]  # fmt: skip


def _baddbmm(d: Draw) -> list[Call]:
    return [call(d(2, 2, 4), d(2, 2, 3), d(2, 3, 4)), call(d(4), d(2, 2, 3), d(2, 3, 4), beta=0.5, alpha=2)]


def _sort(d: Draw) -> list[Call]:
    return [
        call(d.distinct(2, 3)),
        call(d.distinct(2, 3), 0, True),
        call(d.distinct(4), 0),
        call(d.distinct(2, 4), 1, True, True),
    ]


def _topk(d: Draw) -> list[Call]:
    return [call(d.distinct(2, 4), 2), call(d.distinct(3, 2), 2, 0, False), call(d.distinct(5), 3)]


def _conv(d: Draw) -> list[Call]:
    return [
        call(d(2, 2, 5), d(3, 2, 3), d(3), [1], [0], [1], 1),
        call(d(1, 2, 6), d(2, 1, 2), None, [2], [1], [2], 2),
        call(d(2, 2, 4, 5), d(3, 2, 2, 3), d(3), [1, 1], [0, 0], [1, 1], 1),
        call(d(1, 4, 5, 5), d(4, 2, 3, 2), d(4), [2, 1], [1, 1], [1, 2], 2),
        call(d(1, 2, 4, 4), d(2, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 2),
    ]  # fmt: skip


def _conv_input_gradient(d: Draw) -> list[Call]:
    return [
        call(d(2, 3, 3), d(3, 2, 3), [2, 2, 5], [1], [0], [1], 1),
        call(d(1, 4, 3, 2), d(4, 2, 3, 3), [1, 4, 5, 4], [2, 2], [1, 1], [1, 1], 2),
    ]  # fmt: skip


def _conv_weight_gradient(d: Draw) -> list[Call]:
    return [
        call(d(2, 3, 3), d(2, 2, 5), [3, 2, 3], [1], [0], [1], 1),
        call(d(1, 4, 3, 2), d(1, 4, 5, 4), [4, 2, 3, 3], [2, 2], [1, 1], [1, 1], 2),
    ]  # fmt: skip


def _max_pool(d: Draw) -> list[Call]:
    return [
        call(d.distinct(1, 2, 6), [2], [2], [0], [1], False),
        call(d.distinct(1, 2, 5, 4), [3, 2], [2, 1], [1, 1], [1, 2], True),
    ]


def _max_pool_backward(d: Draw) -> list[Call]:
    indices = candelabra.tensor([[[0, 3, 5], [1, 3, 4]]])
    return [call(d(1, 2, 3), indices, [1, 2, 6]), call(d(1, 2, 1, 3), indices.reshape(1, 2, 1, 3), [1, 2, 2, 3])]


def _avg_pool(d: Draw) -> list[Call]:
    return [
        call(d(1, 2, 6), [2], [2], [0], False, True, None), call(d(1, 2, 5, 4), [3, 2], [2, 1], [1, 1], True, False, None),
        call(d(1, 1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, 3),
    ]  # fmt: skip


def _avg_pool_backward(d: Draw) -> list[Call]:
    return [
        call(d(1, 2, 3), [1, 2, 6], [2], [2], [0], False, True, None),
        call(d(1, 2, 2, 2), [1, 2, 4, 4], [2, 2], [2, 2], [0, 0], False, True, None),
    ]


def _batch_norm(d: Draw) -> list[Call]:
    def running(size: int) -> tuple[Any, Any]:
        return candelabra.zeros(size, dtype=d.dtype), candelabra.ones(size, dtype=d.dtype) * 1.5

    return [
        call(d(4, 3), d(3), d(3), None, None, True, 0.1, 1e-5), call(d(2, 3, 4), None, None, None, None, True, 0.1, 1e-3),
        call(d(2, 3, 2, 2), d(3), d(3), *running(3), False, 0.1, 1e-5), call(d(4, 3), None, None, *running(3), False, 0.0, 1e-5),
        call(d(2, 3, 2), d(3), None, None, None, True, 0.1, 1e-5),
    ]  # fmt: skip


def _layer_norm(d: Draw) -> list[Call]:
    return [
        call(d(3, 4), [4], d(4), d(4), 1e-5), call(d(2, 2, 3), [2, 3], d(2, 3), d(2, 3), 1e-3), call(d(3, 4), [4], None, None, 1e-5),
        call(d(3, 4), [4], d(4), None, 1e-5),
    ]  # fmt: skip


def _group_norm(d: Draw) -> list[Call]:
    return [
        call(d(2, 4, 3), d(4), d(4), 2, 1e-5),
        call(d(2, 4, 2, 2), None, None, 4, 1e-3),
        call(d(2, 4), d(4), None, 1, 1e-5),
    ]


def _nll(d: Draw) -> list[Call]:
    weight = candelabra.tensor([0.5, 1.0, 2.0], dtype=d.dtype)
    target = candelabra.tensor([0, 2, 1, 2])
    return [
        call(d(4, 3), target, None, 1, -100), call(d(4, 3), target, weight, 1, -100), call(d(4, 3), target, weight, 2, 2),
        call(d(4, 3), target, weight, 0, 2), call(d(2, 3, 2), d.indices(3, 2, 2), None, 1, -100), call(d(3), candelabra.tensor(1), None, 1, -100),
    ]  # fmt: skip


def _nll_backward(d: Draw) -> list[Call]:
    target = candelabra.tensor([0, 2, 1, 2])
    total = candelabra.tensor(4.0, dtype=d.dtype)
    return [
        call(d(), d(4, 3, grad=False), target, None, 1, -100, total), call(d(4), d(4, 3, grad=False), target, None, 0, -100, total),
        call(d(), d(4, 3, grad=False), target, None, 2, 2, total),
    ]  # fmt: skip


def _as_strided(d: Draw) -> list[Call]:
    return [
        call(d(6), [2, 3], [3, 1]),
        call(d(6), [2, 2], [2, 1], 1),
        call(d(6), [3, 3], [1, 1]),
        call(d(3, 2).detach().t().requires_grad_(), [4], [1]),
        call(d(4), [3, 2], [0, 1]),
    ]


def _views(d: Draw) -> dict[str, list[Call]]:
    return {
        "view": [call(d(2, 3), [6]), call(d(2, 3), [-1, 1, 2])],
        "reshape": [call(d(2, 3), [6]), call(d(3, 2).detach().t().requires_grad_(), [3, -1]), call(d(), [1, 1])],
        "split": [call(d(5, 2), 2), call(d(2, 4), 3, -1)],
        "expand": [call(d(3), [2, 3]), call(d(2, 1), [2, 4]), call(d(), [2, 2]), call(d(1, 3), [2, -1, 3])],
        "permute": [call(d(2, 3, 4), [2, 0, 1]), call(d(2, 3), [-1, 0])],
        "transpose": [call(d(2, 3), 0, 1), call(d(2, 3, 4), -1, 0)],
        "t": [call(d(2, 3)), call(d(3))],
        "squeeze": [call(d(1, 3, 1)), call(d(1, 3, 1), 0), call(d(1, 3, 1), [0, 2]), call(d(2, 3), 0)],
        "unsqueeze": [call(d(3), 0), call(d(2, 3), -1), call(d(), 0)],
        "select": [call(d(2, 3), 0, 1), call(d(2, 3), -1, -1)],
        "slice": [call(d(5), 0, 1, 4), call(d(2, 5), 1, 0, None, 2), call(d(4), 0, -2)],
        "narrow": [call(d(5), 0, 1, 3), call(d(2, 5), 1, 2, 2)],
        "diagonal": [call(d(3, 3)), call(d(3, 4), 1), call(d(2, 3, 3), -1, 1, 2)],
        "unfold": [call(d(5), 0, 2, 1), call(d(5), 0, 2, 2), call(d(2, 6), 1, 3, 2), call(d(4, 2), 0, 2, 3)],
        "movedim": [call(d(2, 3, 4), 0, 2), call(d(2, 3, 4), [0, 1], [1, -1])],
        "unflatten": [call(d(6), 0, [2, 3]), call(d(2, 4), -1, [2, -1])],
        "alias": [call(d(3))],
        "as_strided": _as_strided(d),
    }


_SAMPLERS: dict[str, Any] = {
    # copying
    "clone": _unary(), "contiguous": _unary(), "_to_copy": lambda d: [call(d(3)), call(d(2, 3), dtype=d.dtype)],
    # unary operators
    "neg": _unary(), "sign": _unary("away"), "sgn": _unary("away"), "floor": _unary(low=0.1, high=0.9), "ceil": _unary(low=0.1, high=0.9),
    "trunc": _unary(low=0.1, high=0.9), "frac": _unary(low=0.1, high=0.9), "round": _unary(low=0.6, high=0.9), "square": _unary(),
    "conj_physical": _unary(), "relu": _unary("away"), "nan_to_num": _unary(),
    "exp": _unary(), "exp2": _unary(), "expm1": _unary(), "log": _unary("positive"), "log2": _unary("positive"), "log10": _unary("positive"),
    "log1p": _unary("positive"), "sqrt": _unary("positive"), "rsqrt": _unary("positive"), "reciprocal": _unary("away", margin=0.5),
    "sin": _unary(), "cos": _unary(), "tan": _unary(low=-1.0, high=1.0), "asin": _unary(low=-0.8, high=0.8), "acos": _unary(low=-0.8, high=0.8),
    "atan": _unary(low=-0.8, high=0.8), "sinh": _unary(), "cosh": _unary(), "tanh": _unary(low=-1.0, high=1.0), "asinh": _unary(low=-0.8, high=0.8),
    "acosh": _unary("positive", low=1.3, high=3.0), "atanh": _unary(low=-0.7, high=0.7), "sigmoid": _unary(), "erf": _unary(), "erfc": _unary(),
    "erfinv": _unary(low=-0.7, high=0.7), "i0": _unary(), "lgamma": _unary("positive"),
    "digamma": lambda d: [call(d.positive(4)), call(d(4, low=-0.8, high=-0.2)), call(d(4, low=5.0, high=12.0))],
    "abs": _unary("away"), "angle": _unary("away"),
    "complex": lambda d: [call(d.real(2, 3), d.real(2, 3)), call(d.real(3), d.real(2, 1))],
    "polar": lambda d: [call(d.real(2, 3, low=0.5), d.real(2, 3)), call(d.real(3, low=0.5), d.real(2, 1))],
    # binary operators
    "add": lambda d: [*_binary()(d), call(d(2), d(2), alpha=2), call(d(2), 1.5, alpha=0.5)],
    "sub": lambda d: [*_binary()(d), call(d(2), d(2), alpha=2), call(2.0, d(2), alpha=3)],
    "rsub": lambda d: [*_binary(left=None)(d), call(d(2), d(2), alpha=2)],
    "mul": _binary(), "div": _binary("away", margin=0.5, first="away"),
    "floor_divide": lambda d: [call(d.positive(3, low=2.2, high=2.8), 1.0), call(d.positive(3, low=2.2, high=2.8), d.positive(3, low=1.03, high=1.05))],
    "remainder": lambda d: [call(d(3, low=3.1, high=3.4), d(3, low=0.9, high=0.95)), call(d(3, low=0.1, high=0.4), 0.7)],
    "fmod": lambda d: [call(d(3, low=3.1, high=3.4), d(3, low=0.9, high=0.95)), call(d(3, low=-0.4, high=-0.1), 0.7)],
    "pow": _pow, "maximum": _extrema, "minimum": _extrema, "fmax": _extrema, "fmin": _extrema,
    "atan2": _binary("away", first="away", number=None, left=None), "hypot": _binary("away", first="away", number=None, left=None), "copysign": _binary("away", first="away", left=None), "nextafter": _binary("away", number=None, left=None),
    "xlogy": lambda d: [call(d(2, 3), d.positive(2, 3)), call(d(2, 3), d.positive(3)), call(d(3), 1.5), call(1.5, d.positive(3))],
    "logaddexp": _binary(number=None, left=None), "logaddexp2": _binary(number=None, left=None),
    # ternary operators
    "where": _where, "clamp": _clamp, "lerp": _lerp, "addcmul": _addcmul, "addcdiv": _addcmul,
    # activations
    "gelu": lambda d: [call(d(4)), call(d(2, 3), approximate="tanh")], "silu": _unary(), "mish": _unary(), "log_sigmoid": _unary(),
    "gelu_backward": lambda d: [call(d(4), d(4)), call(d(4), d(4), approximate="tanh")], "silu_backward": lambda d: [call(d(4), d(4))],
    "softplus": lambda d: [call(d(4)), call(d(4), 2.0, 1.0)], "elu": lambda d: [call(d.away(4)), call(d.away(4), 0.7, 1.3, 0.9)],
    "logit": lambda d: [call(d(2, 3, low=0.1, high=0.9)), call(d(4, low=0.3, high=0.7), 0.2)],
    "leaky_relu": lambda d: [call(d.away(4)), call(d.away(4), 0.2)],
    "threshold_backward": lambda d: [call(d(4), d.away(4), 0)], "sigmoid_backward": lambda d: [call(d(4), d(4))],
    "tanh_backward": lambda d: [call(d(4), d(4))],
    # reductions
    "sum": lambda d: _reduction()(d), "_nansum": _reduction(), "mean": _reduction(), "prod": _prod, "amax": _reduction("distinct"), "amin": _reduction("distinct"),
    "_aminmax": _reduction("distinct"),
    "max_with_indices": _single_dim("distinct"), "min_with_indices": _single_dim("distinct"), "var": _var, "std": _var,
    "linalg_vector_norm": _vector_norm, "logsumexp": lambda d: [call(d(2, 3), [1]), call(d(2, 3), [0, 1], True), call(d(4), 0)],
    # scans and sorting
    "cumsum": _single_dim(), "logcumsumexp": _single_dim(), "cumprod": _cumprod, "sort": _sort, "topk": _topk,
    # views
    **{name: (lambda d, name=name: _views(d)[name]) for name in (
        "view", "reshape", "split", "expand", "permute", "transpose", "t", "squeeze", "unsqueeze", "select", "slice", "narrow", "diagonal",
        "unfold", "movedim", "unflatten", "alias", "as_strided",
    )},
    "view_as_real": lambda d: [call(Draw("view_as_real", candelabra.complex128)(3))], "view_as_complex": lambda d: [call(d.real(3, 2))],
    "to": lambda d: [call(d(2, 3), candelabra.complex128), call(d(2, 3), "cpu", candelabra.complex128), call(d(3), dtype=candelabra.complex128)],
    # joining
    "cat": lambda d: [call([d(2, 3), d(1, 3)]), call([d(2, 3), d(2, 1), d(2, 2)], -1), call((d(2), d(3)))],
    "stack": lambda d: [call([d(2), d(2)]), call([d(2, 3), d(2, 3)], -1)],
    "flip": lambda d: [call(d(2, 3), [0]), call(d(2, 3), [0, -1])], "tril": lambda d: [call(d(3, 3)), call(d(2, 3, 4), 1)],
    "triu": lambda d: [call(d(3, 3)), call(d(2, 3, 4), -1)],
    # indexing
    "gather": _gather, "scatter": _scatter, "scatter_add": _scatter_add, "index_select": _index_select, "index_add": _index_add,
    "index_copy": _index_copy, "index_fill": _index_fill, "index": _index, "index_put": _index_put,
    "take": lambda d: [call(d(2, 3), d.indices(6, 4)), call(d(2, 3), candelabra.tensor([[-1, 0], [2, 2]]))],
    "masked_fill": _masked_fill, "masked_scatter": _masked_scatter,
    "masked_select": lambda d: [call(d(2, 3), d.mask(2, 3)), call(d(2, 3), d.mask(3))],
    "embedding": lambda d: [call(d(4, 3), d.indices(4, 5)), call(d(4, 3), d.indices(3, 2, 3), 3)],
    "embedding_backward": lambda d: [call(d(5, 3), d.indices(4, 5), 4), call(d(2, 3, 3), d.indices(4, 2, 3), 4, 1)],
    # linear algebra
    "mm": lambda d: [call(d(2, 3), d(3, 4)), call(d(3, 2).detach().t().requires_grad_(), d(4, 3).detach().t().requires_grad_())],
    "bmm": lambda d: [call(d(2, 2, 3), d(2, 3, 2))], "mv": lambda d: [call(d(2, 3), d(3))], "dot": lambda d: [call(d(3), d(3))],
    "addmm": _addmm, "baddbmm": _baddbmm, "linear": _linear,
    # softmax and losses
    "softmax": _single_dim(), "log_softmax": _single_dim(),
    "softmax_backward": lambda d: [call(d(2, 3), d(2, 3), 1)], "log_softmax_backward": lambda d: [call(d(2, 3), d(2, 3), 1)],
    "nll_loss_forward": _nll, "nll_loss_backward": _nll_backward,
    # convolution and pooling
    "convolution": _conv, "convolution_backward_input": _conv_input_gradient, "convolution_backward_weight": _conv_weight_gradient,
    "max_pool": _max_pool, "adaptive_max_pool": lambda d: [call(d.distinct(1, 2, 5), [2]), call(d.distinct(1, 2, 4, 5), [2, 3])],
    "max_pool_backward": _max_pool_backward, "avg_pool": _avg_pool, "avg_pool_backward": _avg_pool_backward,
    "adaptive_avg_pool": lambda d: [call(d(1, 2, 5), [2]), call(d(1, 2, 4, 5), [2, 3])],
    "adaptive_avg_pool_backward": lambda d: [call(d(1, 2, 2), [1, 2, 5]), call(d(1, 2, 2, 3), [1, 2, 4, 5])],
    # normalization
    "native_batch_norm": _batch_norm, "native_layer_norm": _layer_norm, "native_group_norm": _group_norm,
    "native_batch_norm_backward": lambda d: [call(d(4, 3), d(4, 3), d(3), d(3, grad=False), candelabra.ones(3, dtype=d.dtype), False)],
    "_fused_rms_norm": lambda d: [call(d(3, 4), [4], d(4), 1e-5), call(d(2, 2, 3), [2, 3], None, 1e-3)],
    "native_layer_norm_backward": lambda d: [],
    "_fused_rms_norm_backward": lambda d: [],
    "native_group_norm_backward": lambda d: [],
    **samples_activation.SAMPLERS,
    **samples_attention.SAMPLERS,
    **samples_joining.SAMPLERS,
    **samples_loss.SAMPLERS,
    **samples_recurrent.SAMPLERS,
    **samples_resampling.SAMPLERS,
    **samples_linalg.SAMPLERS,
}  # fmt: skip

#: Operators that are also checked with complex numbers.
COMPLEX_OPERATORS = (
    "clone", "_to_copy", "neg", "square", "conj_physical", "sgn", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt",
    "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "abs", "angle", "add",
    "sub", "rsub", "mul", "div", "pow", "where", "lerp", "addcmul", "addcdiv", "sum", "mean", "prod", "var", "std", "linalg_vector_norm", "cumsum", "logcumsumexp",
    "cumprod", "view", "expand", "permute", "transpose", "t", "squeeze", "unsqueeze", "select", "slice", "narrow", "diagonal", "unfold", "movedim",
    "unflatten", "alias", "as_strided", "cat", "stack", "flip", "tril", "triu", "gather", "scatter", "scatter_add", "index_select", "index_add",
    "index_copy", "index_fill", "index", "index_put", "take", "masked_fill", "masked_scatter", "masked_select", "mm", "bmm", "mv", "dot", "addmm",
    "baddbmm", "linear", "sigmoid_backward", "tanh_backward",
)  # fmt: skip


def samples(name: str, dtype: Any) -> list[Call]:
    """Return calls of operator `name`."""
    return _SAMPLERS[name](Draw(name, dtype))


def has_samples(name: str) -> bool:
    """Return whether an operator has samples."""
    return name in _SAMPLERS
