"""What a workload is: a name, how to build it for a framework, and the least that a machine has to
do for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .inputs import Input, fill

#: One run of a workload; what it returns is compared between the frameworks.
Work = Callable[[], Any]
#: Builds it for a module that is either framework.
Make = Callable[[Any], Work]


@dataclass(frozen=True)
class Workload:
    """One line of the table.

    Attributes
    ----------
    read, written
        Bytes that have to be moved at least. Where `written` is None it is the size of the result,
        and each result counts as read once more where `backward` is set.
    operations
        Floating-point operations, of the precision `rate`.
    limit
        What the ratio to PyTorch's time may be at most.
    in_place
        Whether what is written is memory that was read, so that no other memory has to come to the
        caches for it.
    recording
        Whether gradients are recorded where an argument requires one; inference is timed without.
    comparable
        Whether both frameworks must give the same result; numbers drawn at random differ.
    group
        "call", "training" or "": what the geometric means of the page are taken over.
    """

    name: str
    make: Make
    read: float | None = None
    written: float | None = None
    operations: float = 0
    rate: str = "float32"
    limit: float = 1.0
    recording: bool = True
    comparable: bool = True
    backward: bool = False
    in_place: bool = False
    group: str = ""
    family: str = ""
    tolerance: float = 1e-4

    @property
    def full_name(self) -> str:
        """Unique over all families."""
        return f"{self.family}: {self.name}"


def tensors(result: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(result, (tuple, list)):
        return [tensor for entry in result for tensor in tensors(entry)]
    return [result] if hasattr(result, "element_size") else []


def result_bytes(result: Any) -> int:
    """The size of a result."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(result))


def _tolerance(inputs: tuple[Input, ...]) -> float:
    return max((2e-2 if given.dtype in ("bfloat16", "float16") else 1e-4 for given in inputs), default=1e-4)


def forward(name: str, function: Callable[..., Any], *inputs: Input, **options: Any) -> Workload:
    """``function(xp, *inputs)``: reads each input once and writes each result once."""

    def make(xp: Any) -> Work:
        return functools.partial(function, xp, *(given.make(xp) for given in inputs))

    options = {"read": sum(given.nbytes for given in inputs), "tolerance": _tolerance(inputs)} | options
    return Workload(name, make, **options)


def both_ways(
    name: str, function: Callable[..., Any], *inputs: Input, linear: bool = False, **options: Any
) -> Workload:
    """The same, then backward with a gradient of ones, which writes the gradients of the inputs
    that require one.

    Inputs are read twice, unless the function is `linear`: then its gradient does not depend on
    them.
    """

    def make(xp: Any) -> Work:
        given = [entry.make(xp) for entry in inputs]
        leaves = [tensor for tensor in given if tensor.requires_grad]
        with xp.no_grad():
            ones = xp.ones_like(function(xp, *given))

        def run() -> Any:
            result = function(xp, *given)
            result.backward(ones)
            gradients = [leaf.grad for leaf in leaves]
            for leaf in leaves:
                leaf.grad = None
            return result.detach(), *gradients

        return run

    read = sum(given.nbytes for given in inputs) * (1 if linear else 2)
    options = {"read": read, "tolerance": _tolerance(inputs), "backward": True} | options
    return Workload(name, make, **options)


def layer(name: str, build: Callable[[Any], Any], *inputs: Input, backward: bool = False, **options: Any) -> Workload:
    """A module of `xp.nn`: inference, or forward and backward with gradients of its parameters and
    of inputs that require one.
    """

    def make(xp: Any) -> Work:
        module = fill(xp, build(xp))
        given = [entry.make(xp) for entry in inputs]
        if not backward:
            return functools.partial(module, *given)
        leaves = [*(tensor for tensor in given if tensor.requires_grad), *module.parameters()]

        def run() -> Any:
            result = first(module(*given))
            result.backward(result.detach())
            gradients = [leaf.grad for leaf in leaves]
            for leaf in leaves:
                leaf.grad = None
            return result.detach(), *gradients

        return run

    read = sum(given.nbytes for given in inputs) * (2 if backward else 1)
    options = {
        "read": read, "recording": backward, "backward": backward, "tolerance": 1e-3 if backward else _tolerance(inputs),
    } | options  # fmt: skip
    return Workload(name, make, **options)


def first(result: Any) -> Any:
    """The first tensor of what a module gave."""
    return result[0] if isinstance(result, tuple) else result
