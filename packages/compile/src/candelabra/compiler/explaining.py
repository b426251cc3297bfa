"""What `candelabra.compile` makes of a function, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from candelabra import _C

from .building import build, planning_of
from .recorded_call import RecordedCall
from .trees import UnsupportedError


@dataclass
class Explanation:
    """Whether a function is replayed, and what of."""

    #: The operators of the program: name, file and line of each kernel call.
    operators: list[tuple[str, str, int]] = field(default_factory=list)
    #: Why there is no program; empty if there is one.
    break_reasons: list[str] = field(default_factory=list)
    #: Bytes of the memory that one replay plans for intermediate tensors.
    planned_bytes: int = 0
    #: How many operators each group has, which runs tile by tile.
    group_sizes: list[int] = field(default_factory=list)
    #: How many of these the backend has compiled into functions; its kernels compute the others.
    compiled_sizes: list[int] = field(default_factory=list)
    #: Whether compiled operators give the bits of the kernels.
    is_exact: bool = True

    @property
    def graph_count(self) -> int:
        """How many programs the call is: 1 or 0."""
        return 0 if self.break_reasons else 1

    @property
    def graph_break_count(self) -> int:
        """How many places end the recording; only the first is looked for."""
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        """How many kernels a replay calls."""
        return len(self.operators)

    def __str__(self) -> str:
        head = (
            f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\nOp Count: {self.op_count}"
        )
        bits = "exact" if self.is_exact else "within rounding errors"
        groups = [
            f"Group of {size} operators: {f'{count} compiled, {bits}' if count else 'none compiled'}"
            for size, count in zip(self.group_sizes, self.compiled_sizes, strict=True)
        ]
        return "\n".join([head, *groups, *(f"Break Reason: {reason}" for reason in self.break_reasons)])


def explain(function: Callable[..., Any], *, mode: str | None = None) -> Callable[..., Explanation]:
    """Return a function that calls this one three times and explains what its program would be.

    The calls are made for real: a training step takes three steps.

    Parameters
    ----------
    function
        What `compile` would get.
    mode
        The same as of `compile`.

    Examples
    --------
    >>> import candelabra
    >>> explanation = candelabra.compiler.explain(lambda x: (x * 2).exp())(candelabra.ones(2))
    >>> [name for name, _, _ in explanation.operators]
    ['mul', 'exp']
    >>> candelabra.compiler.explain(lambda x: x * x.sum().item())(candelabra.ones(2)).graph_count
    0
    """

    planning = planning_of(mode)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        function(*args, **kwargs)
        before = RecordedCall(function, args, kwargs)
        before.run()
        refusal = before.refusal()
        if refusal is None:
            call = RecordedCall(function, args, kwargs)
            call.look_around(before.ran)
            call.run()
            refusal = call.refusal()
        operators = list(before.recording.instructions)
        if refusal is not None:
            reason, file, line = refusal
            return Explanation(operators, [f"{reason} ({file}:{line})" if file else reason])
        try:
            program: _C.Program = build(before, call, planning)
        except UnsupportedError as error:
            return Explanation(operators, [str(error)])
        return Explanation(
            operators, [], program.planned_bytes, program.group_sizes, program.compiled_sizes, planning.is_exact
        )

    return explained
