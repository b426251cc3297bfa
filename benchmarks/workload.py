"""Define workloads: a name, how to build it for a framework, and its minimum of bytes and
operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .inputs import Input, fill

#: One run of a workload. The results of the frameworks are compared.
Work = Callable[[], Any]
#: Builds the work for either framework's module.
Make = Callable[[Any], Work]


@dataclass(frozen=True)
class Workload:
    """One line of the table.

    Attributes
    ----------
    read, written
        The minimum of bytes moved. If `written` is None, it is the size of the result, and each
        result counts as read once more if `backward` is set.
    operations
        Floating-point operations, of the precision `rate`.
    limit
        The highest ratio to PyTorch's time.
    in_place
        Whether the output overwrites an input, so that no other memory is loaded into the caches.
    recording
        Whether grad mode is on. Inference is timed without it.
    comparable
        Whether both frameworks must give the same result. Random draws differ.
    group
        "call", "training" or "": the page reports a geometric mean for each.
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
        """Return the name with its family, which is unique."""
        return f"{self.family}: {self.name}"


def tensors(result: Any) -> list[Any]:
    """Return the tensors of a result."""
    if isinstance(result, (tuple, list)):
        return [tensor for entry in result for tensor in tensors(entry)]
    return [result] if hasattr(result, "element_size") else []


def result_bytes(result: Any) -> int:
    """Return the bytes of a result."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(result))


def _tolerance(inputs: tuple[Input, ...]) -> float:
    return max((2e-2 if given.dtype in ("bfloat16", "float16") else 1e-4 for given in inputs), default=1e-4)


def forward(name: str, function: Callable[..., Any], *inputs: Input, **options: Any) -> Workload:
    """Make a workload of ``function(xp, *inputs)``, which reads each input and writes each result
    once.
    """

    def make(xp: Any) -> Work:
        return functools.partial(function, xp, *(given.make(xp) for given in inputs))

    options = {"read": sum(given.nbytes for given in inputs), "tolerance": _tolerance(inputs)} | options
    return Workload(name, make, **options)


def both_ways(
    name: str, function: Callable[..., Any], *inputs: Input, linear: bool = False, **options: Any
) -> Workload:
    """Make a workload of forward and backward with a gradient of ones, which writes the gradients
    of inputs that require one.

    Inputs are read twice, unless the function is `linear`, so that its gradient does not depend on
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
    """Make a workload of an `xp.nn` module: inference, or forward and backward with gradients of
    parameters and of inputs that require one.
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
    """Return the first tensor of a module's result."""
    return result[0] if isinstance(result, tuple) else result
