"""Random programs on tensors, with views, in-place calls, hooks and functions of the user's own.

A program is a list of numbers, so that hypothesis can draw and shrink it. It computes one number
from its leaves. Two things make its derivative by finite differences that of the tape: a detached
value keeps the value that it had at the leaves themselves, and a hook that multiplies the gradient
of `y` by `k` is emulated by computing with ``c + k (y - c)``, where `c` is `y` at the leaves
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra as c

Tensor = Any
Instruction = tuple[int, int, int, int]


class Cube(c.autograd.Function):
    """A function of the user's own, differentiable twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class Halve(c.autograd.Function):
    """The same in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(0.5)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 0.5


# Smooth, and bounded where they would grow from step to step.
UNARY: Sequence[Callable[[Tensor], Tensor]] = [
    c.sin, c.tanh, c.sigmoid, lambda x: x * c.tanh(x), lambda x: c.exp(-x * x), lambda x: 1 / (1 + x * x), lambda x: Cube.apply(c.tanh(x)), lambda x: c.sqrt(1 + x * x),
    lambda x: c.cumsum(x, -1) if x.ndim else x, lambda x: c.softmax(x, -1) if x.ndim else x, lambda x: x.mean(0) if x.ndim else x, lambda x: x.sum() * 0.1, lambda x: x.flip(0) if x.ndim else x,
    lambda x: c.logsumexp(x, -1, keepdim=True) if x.ndim else x, lambda x: c.cat([x, x * 0.5]) if x.ndim and x.numel() < 30 else x, lambda x: c.tril(x) if x.ndim > 1 else x,
]  # fmt: skip


def _select(x: Tensor, n: int) -> Tensor:
    return x.select(n % x.ndim, n % x.shape[n % x.ndim]) if x.ndim else x.view(1)


def _slice(x: Tensor, n: int) -> Tensor:
    return x[n % x.shape[0] :: 1 + n % 2] if x.ndim else x.view(1, 1)


#: Views that can be written to.
VIEWS: Sequence[Callable[[Tensor, int], Tensor]] = [
    _select, _slice,
    lambda x, n: x.transpose(0, -1) if x.ndim else x.view(()),
    lambda x, n: x.unsqueeze(n % (x.ndim + 1)) if x.ndim < 4 else x.squeeze(),
    lambda x, n: x.view(-1) if x.is_contiguous() else x.squeeze(),
    lambda x, n: x.diagonal() if x.ndim > 1 else x.view_as(x),
    lambda x, n: x.narrow(-1, 0, 1 + n % x.shape[-1]) if x.ndim else x.view_as(x),
    lambda x, n: x.movedim(0, -1) if x.ndim else x.view_as(x),
]  # fmt: skip
#: Views that share elements, or come with others from one call: not written to.
SHARED_VIEWS: Sequence[Callable[[Tensor, int], Tensor]] = [
    lambda x, n: x.expand(2, *x.shape) if x.ndim < 3 else x,
    lambda x, n: x.unbind(0)[n % x.shape[0]] if x.ndim else x,
    lambda x, n: x.chunk(2, 0)[0] if x.ndim else x,
    lambda x, n: x.unfold(0, 1, 1) if 0 < x.ndim < 4 else x,
]


def _fit(other: Tensor, shape: Any) -> Tensor:
    """`other` as a fresh tensor that broadcasts to `shape`."""
    try:
        return (other * 1.0).expand(shape)
    except RuntimeError:
        return c.tanh(other.mean())


def _set_item(x: Tensor, other: Tensor, n: int) -> None:
    if x.ndim:
        at = n % x.shape[0]
        x[at] = _fit(other, x.shape[1:])
    else:
        x[...] = _fit(other, ())


def _index_add(x: Tensor, other: Tensor, n: int) -> None:
    if x.ndim:
        x.index_add_(0, c.tensor([n % x.shape[0]]), _fit(other, (1, *x.shape[1:])).expand(1, *x.shape[1:]))
    else:
        x.add_(_fit(other, ()))


#: Calls that write to their first argument.
WRITES: Sequence[Callable[[Tensor, Tensor, int], Any]] = [
    lambda x, other, n: x.mul_(0.5 + n % 3),
    lambda x, other, n: x.add_(_fit(other, x.shape), alpha=0.5),
    lambda x, other, n: x.mul_(_fit(other, x.shape)),
    lambda x, other, n: x.copy_(_fit(other, x.shape)),
    lambda x, other, n: x.tanh_(),
    lambda x, other, n: x.zero_(),
    lambda x, other, n: x.masked_fill_(c.arange(x.numel()).reshape(x.shape) % 2 == 0, 0.3),
    lambda x, other, n: x.addcmul_(_fit(other, x.shape), _fit(other, x.shape)),
    lambda x, other, n: x.clamp_(-50, 50),
    lambda x, other, n: Halve.apply(x),
    _set_item,
    _index_add,
]


class Run:
    """One computation of a program.

    `constants` are the values at the leaves themselves of what does not follow them; they are
    recorded if `records` is true. `emulates`: hooks are emulated.
    """

    def __init__(self, constants: list[Tensor], records: bool, emulates: bool) -> None:
        self.constants, self.records, self.emulates = constants, records, emulates
        self.used = 0
        self.calls = 0  # of hooks that only look

    def constant(self, x: Tensor) -> Tensor:
        if self.records:
            self.constants.append(x.detach().clone())
        self.used += 1
        return self.constants[self.used - 1]

    def scaled(self, y: Tensor, factor: float, way: int) -> Tensor:
        """A fresh `y`, the gradient of which a hook multiplies."""
        kept = self.constant(y)
        if self.emulates:
            return kept + factor * (y - kept)
        if not y.requires_grad:
            return y
        if way % 3 == 0:
            y.register_hook(lambda grad: grad * factor)
        elif way % 3 == 1:
            y.grad_fn.register_prehook(lambda grads: (grads[0] * factor,))
        else:
            y.register_hook(self.count)
            y.register_hook(lambda grad: grad * factor)
        return y

    def count(self, grad: Tensor) -> None:
        self.calls += 1

    def __call__(self, leaves: Sequence[Tensor], program: Sequence[Instruction]) -> Tensor:
        # Whether a value may be written to: no leaf, no view of one, and no shared elements.
        values: list[tuple[Tensor, bool]] = [(leaf, False) for leaf in leaves]
        for kind, first, second, n in program:
            self.step(values, kind, *values[first % len(values)], values[second % len(values)][0], n)
        total = leaves[0].sum() * 0
        for k, (value, _) in enumerate(values):
            weights = c.cos(c.arange(value.numel(), dtype=c.float64) + k).reshape(value.shape)
            total = total + (value * weights).sum()
        return total

    def step(self, values: list[tuple[Tensor, bool]], kind: int, x: Tensor, writable: bool, other: Tensor, n: int) -> None:  # fmt: skip
        match kind % 10:
            case 0 | 1:
                values.append((UNARY[n % len(UNARY)](x) * 1.0, True))
            case 2:
                values.append((x * c.tanh(_fit(other, x.shape)), True))
            case 3:
                values.append((VIEWS[n % len(VIEWS)](x, n // 8), writable))
            case 4:
                values.append((SHARED_VIEWS[n % len(SHARED_VIEWS)](x, n // 4), False))
            case 5 | 6:  # a fresh tensor, a view of it, and a write to either
                fresh = x * 1.0
                view = VIEWS[n % len(VIEWS)](fresh, n // 8)
                written = view if n % 5 else fresh
                result = WRITES[(n // 7) % len(WRITES)](written, other, n)
                values += [(fresh, True), (view, True)]
                if result is not None and result is not written:
                    values.append((result, False))
            case 7:
                if writable:
                    WRITES[n % len(WRITES)](x, other, n)
            case 8:
                values.append((self.scaled(c.sin(x), 0.5 + n % 4, n), True))
            case _:
                values.append((self.constant(x).clone() + x * 0.5, True))
