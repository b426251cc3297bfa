"""What `candelabra.compile` makes of a function, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from candelabra import _C

from .building import build
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
        return "\n".join([head, *(f"Break Reason: {reason}" for reason in self.break_reasons)])


def explain(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """Return a function that calls this one three times and explains what its program would be.

    The calls are made for real: a training step takes three steps.

    Examples
    --------
    >>> import candelabra
    >>> explanation = candelabra.compiler.explain(lambda x: (x * 2).exp())(candelabra.ones(2))
    >>> [name for name, _, _ in explanation.operators]
    ['mul', 'exp']
    >>> candelabra.compiler.explain(lambda x: x * x.sum().item())(candelabra.ones(2)).graph_count
    0
    """

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
            program: _C.Program = build(before, call, False)
        except UnsupportedError as error:
            return Explanation(operators, [str(error)])
        return Explanation(operators, [], program.planned_bytes)

    return explained
