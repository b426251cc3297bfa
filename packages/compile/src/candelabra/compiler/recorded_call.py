"""One call that is run and recorded, and what it says about replaying it."""

from __future__ import annotations

import contextlib
import gc
import operator
from typing import TYPE_CHECKING, Any

from candelabra import _C, Tensor

from .environment import Environment
from .frames import RanCode
from .trees import (
    Description,
    UnsupportedError,
    describe,
    geometry_of,
    same_form,
    strange_leaf,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .histories import Boundaries


def _boundaries_of(inputs: list[Tensor]) -> Boundaries | None:
    if all(tensor.grad_fn is None for tensor in inputs):
        return None
    # Only with candelabra.autograd are there histories.
    from .histories import Boundaries

    return Boundaries(inputs)


class RecordedCall:
    """A call, its recording, and the state around it.

    The call is made for real: its result and its effects are those of an ordinary call.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.inputs: list[Tensor] = []
        self.positional = tuple(describe(value, self.inputs) for value in args)
        self.keywords = tuple((name, describe(value, self.inputs)) for name, value in kwargs.items())
        self.recording = _C.Recording()
        #: Where the tensors of the arguments begin in their memory, in bytes.
        self.offsets = [tensor.storage_offset() * tensor.element_size() for tensor in self.inputs]
        self.buffers: list[int] = []
        self._geometry = geometry_of(self.inputs)
        self.ran = RanCode()
        self.boundaries = _boundaries_of(self.inputs)
        self.environment: Environment | None = None
        #: The gradients when the call began, of the tensors of the environment and of the inputs.
        self.gradients: dict[int, Tensor | None] = {}
        self.result: Any = None
        self.outputs: list[Tensor] = []
        self.form: Description = ()
        #: Memory made in the call that lives on.
        self.living: set[int] = set()

    def look_around(self, ran: RanCode) -> None:
        """Note the state that the code of an earlier recorded call read, before this call runs."""
        environment = self._environment_of(ran)
        # Functions with a cache may take from it what their code has read before.
        cached = [code for code in environment.cached if code not in ran.codes]
        if cached:
            ran.codes.update((code, {}) for code in cached)
            environment = self._environment_of(ran)
        inputs = {id(tensor) for tensor in self.inputs}
        environment.tensors = [tensor for tensor in environment.tensors if id(tensor) not in inputs]
        self.environment = environment
        self.gradients = {id(tensor): tensor._grad for tensor in (*environment.tensors, *self.inputs)}

    def _environment_of(self, ran: RanCode) -> Environment:
        environment = Environment(ran)
        forms = (*self.positional, *(form for _, form in self.keywords))
        environment.walk(self.function, *(value for form in forms for value in values_of(form)))
        return environment

    def run(self) -> Any:
        """Make the call. Returns its result."""
        recording = self.recording
        # Finalizers and callbacks of the collector are not part of the call.
        collects = gc.isenabled()
        gc.disable()
        recording.start()
        try:
            with self.ran, self.boundaries or contextlib.nullcontext():
                self.result = self.function(*self.args, **self.kwargs)
            self._look_at_living()
        finally:
            recording.stop()
            if collects:
                gc.enable()
        # Memory that no operator used gets a number too, after that which some did.
        for tensor in (*self.inputs, *(self.environment.tensors if self.environment else ())):
            recording.register(tensor)
        self.buffers = [recording.find(tensor) for tensor in self.inputs]
        return self.result

    def _look_at_living(self) -> None:
        """Find the memory that lives on, and whether cycles of garbage hold some of it."""
        try:
            self.form = describe(self.result, self.outputs)
        except UnsupportedError:
            return
        known = {self.recording.find(tensor) for tensor in self.outputs}
        known |= {self.recording.find(grad) for grad in self._new_gradients()}
        # A first recording is only compared with the next, which knows the gradients of parameters.
        if self.environment is not None and not known.issuperset(self.recording.living):
            gc.collect()
        self.living = set(self.recording.living) - known

    def changes_arguments(self) -> bool:
        """Return whether the call changed the containers of its arguments, or the forms of
        tensors.
        """
        tensors: list[Tensor] = []
        positional = tuple(describe(value, tensors) for value in self.args)
        keywords = tuple((name, describe(value, tensors)) for name, value in self.kwargs.items())
        unchanged = len(tensors) == len(self.inputs) and all(map(operator.is_, tensors, self.inputs))
        forms = [form for _, form in (*enumerate(positional), *keywords)]
        before = [form for _, form in (*enumerate(self.positional), *self.keywords)]
        if self.boundaries is not None and self.boundaries.have_changed:
            return True
        return not (unchanged and all(map(same_form, forms, before)) and self._geometry == geometry_of(tensors))

    def _new_gradients(self) -> list[Tensor]:
        tensors = self.environment.tensors if self.environment else ()
        return [grad for tensor in tensors if (grad := tensor._grad) is not None]

    def forget(self) -> RecordedCall:
        """Give up the arguments and the results, and keep what later calls are compared with."""
        self.args, self.kwargs, self.result = (), {}, None
        self.inputs, self.outputs, self.environment, self.gradients = [], [], None, {}
        self.boundaries = None
        self.recording.forget_edges()
        return self

    def refusal(self) -> tuple[str, str, int] | None:
        """Return why no program can be made of the recording, with a file and a line, or None."""
        reason: tuple[str, str, int] | None = self.recording.reason
        if reason is not None:
            return reason
        if self.ran.effect is not None:
            name, file, line = self.ran.effect
            return (
                f"{name}() writes, reads a clock or other state outside of tensors, or draws a random number, which a "
                "replay would not repeat",
                file,
                line,
            )
        if not self.form:
            return ("containers of the result are nested too deeply", "", 0)
        strange = strange_leaf(self.form)
        if strange is not None:
            return (f"the result holds a {type(strange).__name__}, which a replay could not make", "", 0)
        return None
