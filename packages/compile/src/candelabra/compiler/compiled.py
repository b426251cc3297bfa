"""Compiled functions: which calls run as written, which are recorded, and which are replayed."""

from __future__ import annotations

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra
from candelabra import _C, Tensor

from . import stance, units
from .building import CALLS_BETWEEN_CHECKS, Planning, build, compare, open_results
from .environment import Environment
from .recorded_call import RecordedCall
from .trees import UnsupportedError, describe, key_of

#: Programs per compiled function; the least recently used is given up.
MOST_PROGRAMS = 16
#: Recordings of one signature after which a function that cannot be replayed runs as written.
MOST_RECORDINGS = 5
#: Programs that were made of one signature and no longer fit it, such as where a global is assigned
#: in each call.
MOST_REBUILT = 16


class CompileError(RuntimeError):
    """A function compiled with ``fullgraph=True`` cannot be replayed as a whole."""


class _Made(NamedTuple):
    """A program, and the call that it was made of."""

    program: Any
    call: RecordedCall


class _Signature:
    """What is known of the calls of one signature."""

    __slots__ = ("calls", "checked", "forwards", "graph", "last", "programs", "rebuilt", "recordings", "refused")

    def __init__(self) -> None:
        self.calls = 0
        self.recordings = 0
        self.rebuilt = 0
        self.last: RecordedCall | None = None
        self.programs: list[_Made] = []
        self.refused = False
        #: Of calls whose result has a graph: the last recorded one, the programs of forward passes,
        #: and the call that they were made of.
        self.graph: Any = None
        self.forwards: list[Any] = []
        self.checked: RecordedCall | None = None


#: All compiled functions, for `reset`.
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


class Compiled:
    """The state of one compiled function. `Compiled.replayer` is what programs call."""

    def __init__(
        self, function: Callable[..., Any], name: str, fullgraph: bool, planning: Planning, is_unit: bool = False
    ) -> None:
        self.function = function
        self.name = name
        self.fullgraph = fullgraph
        self.planning = planning
        #: Whether this is a module beneath a function that has warned.
        self.is_unit = is_unit
        #: The module whose calls are compiled, if any.
        self.module = getattr(function, "__self__", None) if getattr(function, "__name__", "") == "__call__" else None
        self.signatures: OrderedDict[Any, _Signature] = OrderedDict()
        self.warned: set[str] = set()
        self.lock = threading.Lock()
        self.replayer = _C.Replayer(self.call)
        #: Replays forward passes whose results get a node of the tape.
        self.forwards = _C.Replayer(lambda *args, **kwargs: None)
        self.replayer.__dict__["compiled"] = self
        _all.add(self)

    def forget(self) -> None:
        """Give up all programs; calls begin anew."""
        with self.lock:
            self.signatures.clear()
            self.replayer.programs = []
            self.forwards.programs = []

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call that no program replays."""
        if _C.is_recording() or not stance.may_record() or not _is_plain():
            return self.function(*args, **kwargs)
        found = self.forwards(*args, **kwargs)
        if found is not None:
            passes, result, output, saved = found
            inputs = self._tensors(args, kwargs)
            passes.backward.attach(output, saved, inputs)
            return result
        if not self.lock.acquire(blocking=False):
            return self.function(*args, **kwargs)
        try:
            signature = self._signature(args, kwargs)
        finally:
            self.lock.release()
        if signature is None:
            return self.function(*args, **kwargs)
        if signature.refused:
            with units.modules_as_units(True, self.module):
                return self.function(*args, **kwargs)
        signature.calls += 1
        # Of several calls before a backward pass, one is recorded.
        if signature.calls == 1 or (signature.graph is not None and signature.graph.is_pending()):
            return self.function(*args, **kwargs)
        fitting = [made for made in signature.programs if made.program.failed_guard() is None]
        due = [made for made in fitting if made.program.calls_left <= 0]
        # Without one that is due, another thread replays, or arguments share memory in another way.
        if (fitting and not due) or not self.lock.acquire(blocking=False):
            return self.function(*args, **kwargs)
        try:
            stance.check_recording_allowed(self.name)
            if due:
                return self._check(signature, due, args, kwargs)
            return self._record(signature, args, kwargs)
        finally:
            self.lock.release()

    @staticmethod
    def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        tensors: list[Tensor] = []
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                tensors.append(value)
            else:
                describe(value, tensors)
        return tensors

    def _signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Signature | None:
        """Return the state of the calls of this signature; None where it cannot be replayed."""
        tensors: list[Tensor] = []
        try:
            forms = [describe(value, tensors) for value in args]
            named = [(name, describe(value, tensors)) for name, value in kwargs.items()]
            key = (
                tuple(key_of(form, tensors) for form in forms),
                tuple((name, key_of(form, tensors)) for name, form in named),
                _sharing(tensors),
                _mode(),
            )
            hash(key)
        except (UnsupportedError, TypeError):
            return None
        if any(_is_strange(tensor) for tensor in tensors):
            return None
        signature = self.signatures.get(key)
        if signature is None:
            signature = self.signatures[key] = _Signature()
            if len(self.signatures) > 4 * MOST_PROGRAMS:
                self.signatures.popitem(last=False)
        else:
            self.signatures.move_to_end(key)
        return signature

    def _check(self, signature: _Signature, due: list[_Made], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call, record it, and compare it with the programs that would replay it."""
        call = RecordedCall(self.function, args, kwargs)
        result = call.run()
        refusal = call.refusal()
        try:
            for made in due:
                compare(made.call, call)
                made.program.calls_left = CALLS_BETWEEN_CHECKS
        except UnsupportedError as error:
            refusal = refusal or (f"a later call computes otherwise: {error}", "", 0)
        if refusal is not None:
            self._refuse(signature, call, *refusal)
        return result

    def _record(self, signature: _Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call, record it, and make a program of it if it is the second in a row."""
        call = RecordedCall(self.function, args, kwargs)
        last = signature.last
        if last is not None:
            call.look_around(last.ran)
        result = call.run()
        signature.recordings += 1
        refusal = call.refusal()
        if refusal is not None:
            self._refuse(signature, call, *refusal)
            return result
        opened = open_results(call)
        if opened:
            return self._record_graph(signature, call, opened, result)
        if last is None:
            signature.last = call.forget()
            return result
        try:
            program = build(last, call, self.planning)
        except UnsupportedError as error:
            # State that is made in early calls, such as a cache, may have been the reason.
            if signature.recordings >= MOST_RECORDINGS:
                self._refuse(signature, call, str(error), "", 0)
            else:
                signature.last = call.forget()
        else:
            signature.last = None
            self._add(signature, _Made(program, call.forget()))
        return result

    def _record_graph(self, signature: _Signature, call: RecordedCall, opened: list[Tensor], result: Any) -> Any:
        """Return the result of a recorded call, whose graph records its backward pass."""
        from .graph_calls import Passes, RecordedGraph, with_other

        if call.boundaries is not None and call.boundaries.have_changed:
            self._refuse(signature, call, "the call changes an argument in place that has a history", "", 0)
            return result
        before = signature.graph
        (output, *others) = opened
        try:
            if others:
                raise UnsupportedError("several results require grad")
            graph = RecordedGraph(call, output, functools.partial(self._backward_ran, signature))
            if signature.checked is not None:
                if any(program.failed_guard() is None for program in signature.forwards):
                    compare(signature.checked, call)
                else:  # the state has changed
                    signature.checked = None
            if before is not None and before.recording is not None and call.environment is not None:
                graph.build_forward(before, Passes(), self.planning)
            elif signature.recordings >= MOST_RECORDINGS:
                raise UnsupportedError("no backward pass uses the graph of its result")
        except UnsupportedError as error:
            if others or signature.checked is not None or signature.recordings >= MOST_RECORDINGS:
                self._refuse(signature, call, str(error), "", 0)
                return result
            graph = RecordedGraph(call, output, functools.partial(self._backward_ran, signature))
        signature.last = call
        signature.graph = graph
        return with_other(result, output, graph.outside())

    def _backward_ran(self, signature: _Signature, graph: Any) -> None:
        """Make the programs of a call, now that its backward pass has been recorded."""
        if graph.forward is None or signature.refused or signature.graph is not graph:
            return
        try:
            graph.owner.backward = graph.build_backward(self.planning)
        except UnsupportedError as error:
            if signature.recordings >= MOST_RECORDINGS:
                self._refuse(signature, graph.call, str(error), "", 0)
            return
        signature.graph, signature.last, signature.recordings = None, None, 0
        signature.checked = graph.call.forget()
        signature.rebuilt += 1
        if signature.rebuilt > MOST_REBUILT:
            self._refuse(signature, graph.call, "state that it reads changes between calls", "", 0)
            return
        old = [program for program in signature.forwards if program.calls_left <= 0]
        signature.forwards = [graph.forward, *(program for program in signature.forwards if program not in old)]
        kept = [program for program in self.forwards.programs if program not in old]
        self.forwards.programs = [graph.forward, *kept][:MOST_PROGRAMS]

    def _add(self, signature: _Signature, made: _Made) -> None:
        signature.rebuilt += 1
        signature.recordings = 0
        if signature.rebuilt > MOST_REBUILT:
            changed = signature.programs[-1].program.failed_guard() or "state that it reads"
            self._refuse(signature, made.call, f"{changed} changes between calls", "", 0)
            return
        signature.programs.append(made)
        programs = [made.program, *self.replayer.programs]
        for one in self.signatures.values():
            one.programs = [kept for kept in one.programs if kept.program not in programs[MOST_PROGRAMS:]]
        self.replayer.programs = programs[:MOST_PROGRAMS]

    def _refuse(self, signature: _Signature, call: RecordedCall, reason: str, file: str, line: int) -> None:
        """Run calls of this signature as they are written from now on, and replay their modules."""
        signature.refused = True
        signature.last = None
        given_up = [made.program for made in signature.programs]
        signature.programs = []
        self.forwards.programs = [one for one in self.forwards.programs if one not in signature.forwards]
        signature.forwards, signature.graph = [], None
        self.replayer.programs = [one for one in self.replayer.programs if one not in given_up]
        place = f" ({file}:{line})" if file else ""
        message = f"{self.name} is not replayed, because {reason}{place}. {_remedy(reason)}"
        if self.fullgraph:
            raise CompileError(message)
        environment = Environment(call.ran)
        environment.walk(self.function, *call.args, *call.kwargs.values())
        count = units.make_units(environment.modules, _compile_unit)
        if reason in self.warned or self.is_unit:
            return
        self.warned.add(reason)
        parts = " The modules that it calls are replayed each." if count else ""
        _C.warn(f"candelabra.compile: {message}{parts}")


def reset_all() -> None:
    """Give up the programs of all compiled functions."""
    for compiled in list(_all):
        compiled.forget()


def _mode() -> tuple[Any, ...]:
    return (
        candelabra.is_grad_enabled(),
        candelabra.is_inference_mode_enabled(),
        candelabra.get_default_dtype(),
        candelabra.get_default_device(),
    )


def _sharing(tensors: list[Tensor]) -> tuple[Any, ...]:
    """Return which tensors share memory, at which distance, and which are one."""
    first: dict[int, int] = {}
    one = {id(tensor): number for number, tensor in reversed(list(enumerate(tensors)))}
    found = []
    for tensor in tensors:
        begin = tensor.storage_offset() * tensor.element_size()
        memory = tensor.untyped_storage()._cdata
        found.append((memory, begin - first.setdefault(memory, begin)))
    order = {memory: number for number, memory in enumerate(first)}
    return (
        tuple((order[memory], distance) for memory, distance in found),
        tuple(one[id(tensor)] for tensor in tensors),
    )


def _is_plain() -> bool:
    """Return whether no hook or mode sees the operators of this thread."""
    hook = _C.set_dispatch_hook(None)
    _C.set_dispatch_hook(hook)
    return hook is None and not _C.torch_function_modes()


def _is_strange(tensor: Tensor) -> bool:
    """Return whether calls with this argument are never replayed.

    Those are tensors with hooks or attributes, and those of classes that may compute otherwise.
    """
    kind = type(tensor)
    is_plain = kind is Tensor or kind.__module__ == "candelabra.nn.parameter"
    return not is_plain or tensor._hooks is not None or bool(vars(tensor))


def _remedy(reason: str) -> str:
    if "reads the value" in reason:
        return "Return the tensor, and read its value outside the compiled function."
    if "depends on data" in reason:
        return "Use candelabra.where() or masks, whose shapes are known."
    if "requires grad" in reason:
        return "Compile the whole training step, with its backward pass."
    return "Its calls run as they are written."


def _compile_unit(module: Any) -> Any:
    """Return the callable that replays the calls of a module beneath another function."""
    return Compiled(module.__call__, type(module).__name__, False, Planning(), is_unit=True).replayer


def compile_function(function: Callable[..., Any], fullgraph: bool, planning: Planning, name: str | None = None) -> Any:
    """Return the callable that replays `function`."""
    name = name or getattr(function, "__qualname__", None) or type(function).__name__
    compiled = Compiled(function, name, fullgraph, planning)
    return functools.update_wrapper(compiled.replayer, function)
