"""Compiled functions: which calls run as written, which are recorded, and which are replayed."""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra
from candelabra import _C, Tensor

from . import stance
from .building import CALLS_BETWEEN_CHECKS, NeedsGraphError, build, compare
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

    __slots__ = ("calls", "last", "programs", "rebuilt", "recordings", "refused")

    def __init__(self) -> None:
        self.calls = 0
        self.recordings = 0
        self.rebuilt = 0
        self.last: RecordedCall | None = None
        self.programs: list[_Made] = []
        self.refused = False


#: All compiled functions, for `reset`.
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


class Compiled:
    """The state of one compiled function. `Compiled.replayer` is what programs call."""

    def __init__(self, function: Callable[..., Any], name: str, fullgraph: bool, debug: bool) -> None:
        self.function = function
        self.name = name
        self.fullgraph = fullgraph
        self.debug = debug
        self.signatures: OrderedDict[Any, _Signature] = OrderedDict()
        self.warned: set[str] = set()
        self.lock = threading.Lock()
        self.replayer = _C.Replayer(self.call)
        self.replayer.compiled = self
        _all.add(self)

    def forget(self) -> None:
        """Give up all programs; calls begin anew."""
        with self.lock:
            self.signatures.clear()
            self.replayer.programs = []

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call that no program replays."""
        if _C.is_recording() or not stance.may_record() or not _is_plain():
            return self.function(*args, **kwargs)
        if not self.lock.acquire(blocking=False):
            return self.function(*args, **kwargs)
        try:
            signature = self._signature(args, kwargs)
        finally:
            self.lock.release()
        if signature is None or signature.refused:
            return self.function(*args, **kwargs)
        signature.calls += 1
        if signature.calls == 1:
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
            self._refuse(signature, *refusal)
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
            self._refuse(signature, *refusal)
            return result
        if last is None:
            signature.last = call.forget()
            return result
        try:
            program = build(last, call, self.debug)
        except NeedsGraphError as error:
            self._refuse(signature, str(error), "", 0)
        except UnsupportedError as error:
            # State that is made in early calls, such as a cache, may have been the reason.
            signature.last = call.forget()
            if signature.recordings >= MOST_RECORDINGS:
                self._refuse(signature, str(error), "", 0)
        else:
            signature.last = None
            self._add(signature, _Made(program, call.forget()))
        return result

    def _add(self, signature: _Signature, made: _Made) -> None:
        signature.rebuilt += 1
        signature.recordings = 0
        if signature.rebuilt > MOST_REBUILT:
            changed = signature.programs[-1].program.failed_guard() or "state that it reads"
            self._refuse(signature, f"{changed} changes between calls", "", 0)
            return
        signature.programs.append(made)
        programs = [made.program, *self.replayer.programs]
        for one in self.signatures.values():
            one.programs = [kept for kept in one.programs if kept.program not in programs[MOST_PROGRAMS:]]
        self.replayer.programs = programs[:MOST_PROGRAMS]

    def _refuse(self, signature: _Signature, reason: str, file: str, line: int) -> None:
        """Run calls of this signature as they are written from now on."""
        signature.refused = True
        signature.last = None
        given_up = [made.program for made in signature.programs]
        signature.programs = []
        self.replayer.programs = [one for one in self.replayer.programs if one not in given_up]
        place = f" ({file}:{line})" if file else ""
        message = f"{self.name} is not replayed, because {reason}{place}. {_remedy(reason)}"
        if self.fullgraph:
            raise CompileError(message)
        if reason not in self.warned:
            self.warned.add(reason)
            warnings.warn(f"candelabra.compile: {message}", stacklevel=4)


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
    """Return which tensors share memory, and at which distance."""
    first: dict[int, int] = {}
    found = []
    for tensor in tensors:
        begin = tensor.storage_offset() * tensor.element_size()
        memory = tensor.untyped_storage()._cdata
        found.append((memory, begin - first.setdefault(memory, begin)))
    order = {memory: number for number, memory in enumerate(first)}
    return tuple((order[memory], distance) for memory, distance in found)


def _is_plain() -> bool:
    """Return whether no hook or mode sees the operators of this thread."""
    hook = _C.set_dispatch_hook(None)
    _C.set_dispatch_hook(hook)
    return hook is None and not _C.torch_function_modes()


def _is_strange(tensor: Tensor) -> bool:
    """Return whether a tensor as an argument is never replayed: one with a history or hooks."""
    return tensor.grad_fn is not None or tensor._hooks is not None or tensor.is_inference()


def _remedy(reason: str) -> str:
    if "reads the value" in reason:
        return "Return the tensor, and read its value outside the compiled function."
    if "depends on data" in reason:
        return "Use candelabra.where() or masks, whose shapes are known."
    if "requires grad" in reason:
        return "Compile the whole training step, with its backward pass."
    return "Its calls run as they are written."


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "replay",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Record a function or a module while it runs, then replay its kernels from C++.

    The first call with arguments of one signature runs as written, the second and the third are
    recorded too, and later ones replay a program: the same kernels with the same numbers, without
    Python. A signature is the form of the arguments with the dtypes, sizes and strides of tensors
    and the values of everything else. A program is not used where the state that the code reads has
    changed: attributes and modes of modules, parameters, globals, grad mode.

    What cannot be replayed runs as written, with one warning that says why and where.

    Parameters
    ----------
    model
        A function or a `candelabra.nn.Module`. Without it, a decorator is returned.
    fullgraph
        Raise `CompileError` where the function cannot be replayed, instead of warning.
    dynamic
        Accepted; every signature has its own program.
    backend
        ``"replay"``. PyTorch's names ``"inductor"``, ``"aot_eager"``, ``"eager"`` and
        ``"cudagraphs"`` mean the same, except that ``"eager"`` runs the function as written.
    mode
        ``None``, ``"default"``, ``"reduce-overhead"``, ``"max-autotune"`` or
        ``"max-autotune-no-cudagraphs"``: all the same, and exact.
    options
        ``{"debug_memory": True}`` gives every intermediate tensor memory of its own, and poisons it
        after its last use. Other options are ignored, as PyTorch's are for its compiler only.
    disable
        Return the function as it is.

    Returns
    -------
    Callable
        The compiled function, or an `OptimizedModule`.

    Raises
    ------
    ValueError
        If the mode or the backend is unknown.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.compile
    ... def double(x):
    ...     return x + x
    >>> [double(candelabra.tensor([float(i)])).item() for i in range(5)]
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    if mode not in _MODES:
        raise ValueError(f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}")
    if not callable(backend) and backend not in BACKENDS:
        raise ValueError(f"Unknown backend {backend!r}; there are {', '.join(BACKENDS)}")
    if callable(backend):
        raise ValueError("backend= takes a name: functions of FX graphs are not supported")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile() takes a function or a module, not {type(model).__name__}")
    if disable or backend == "eager":
        return model
    debug = bool((options or {}).get("debug_memory", False))
    if hasattr(model, "named_parameters"):
        from .optimized_module import OptimizedModule

        return OptimizedModule(model, fullgraph=fullgraph, debug=debug)
    if getattr(model, "_candelabra_disabled", False):
        return model
    return compile_function(model, fullgraph, debug)


#: Modes, of which the first is none.
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKENDS = ("replay", "inductor", "aot_eager", "eager", "cudagraphs")


def compile_function(function: Callable[..., Any], fullgraph: bool, debug: bool) -> Any:
    """Return the callable that replays `function`."""
    name = getattr(function, "__qualname__", None) or type(function).__name__
    compiled = Compiled(function, name, fullgraph, debug)
    return functools.update_wrapper(compiled.replayer, function)
