"""`trace`, `script`, `freeze` and their relatives."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import candelabra
import candelabra.export
from candelabra import _C, Tensor, nn, pytree
from candelabra.export.interface import Graph, TracerWarning

from .programs import (
    FrozenModule,
    Recordable,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    Traced,
)


class TracingCheckError(Exception):
    """A function computes other operators when it is traced a second time."""


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: list[tuple[Any, ...]] | dict[Callable[..., Any], list[tuple[Any, ...]]] | None = None,
) -> Any:
    """Return a function or module that can be saved: the operators of its first call are its graph.

    Its code runs as Python, with all of its branches. The graph has those that a call with the
    arguments of the first call takes, and is recorded when it is asked for, or saved.

    Parameters
    ----------
    obj
        A function or a module. Classes are returned unchanged.
    optimize, _frames_up, _rcb
        Accepted for compatibility.
    example_inputs
        Tuples of arguments, for a module by its method ``forward``. The graph is recorded with the
        first, so that no call is needed.

    Returns
    -------
    ScriptFunction or ScriptModule

    Raises
    ------
    TypeError
        If it is neither a function, a module nor a class.
    ValueError
        If there are examples for other methods.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.jit.script
    ... def double(x):
    ...     return x * 2
    >>> double(candelabra.ones(2))
    tensor([2., 2.])
    """
    if inspect.isclass(obj) or isinstance(obj, ScriptModule | ScriptFunction):
        return obj
    if not callable(obj):
        raise TypeError(f"jit.script(): expected a function, a module or a class, but got {type(obj).__name__}")
    made = RecursiveScriptModule(obj) if isinstance(obj, nn.Module) else ScriptFunction(obj)
    if isinstance(example_inputs, dict):
        others = [method for method in example_inputs if getattr(method, "__name__", "") != "forward"]
        if others or not isinstance(obj, nn.Module):
            raise ValueError("jit.script(): example_inputs is a list, or for a module a dict with its forward")
        example_inputs = next(iter(example_inputs.values()), None)
    if example_inputs:
        made._recordable.note(tuple(example_inputs[0]), {})
    return made


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Return a function or module that computes the operators of a call.

    Branches and values are those of the call; where values follow from data, there is a warning.
    Arguments of other sizes, and `train` or `eval`, are traced anew. What is loaded from a file
    cannot be: it takes the sizes that the function works with, as far as they are found out.

    Parameters
    ----------
    func
        A function or a module.
    example_inputs, example_kwarg_inputs
        The arguments of the call: a tensor or a tuple, and those by name.
    check_trace
        Whether it is traced a second time, and compared.
    check_inputs
        Further tuples of arguments to compare with.
    check_tolerance
        How far results may differ.
    strict
        Accepted for compatibility: results may be lists and dicts, whose form belongs to the sizes
        that were traced.
    optimize, _force_outplace, _module_class, _compilation_unit, _store_inputs
        Accepted for compatibility.

    Returns
    -------
    ScriptFunction or ScriptModule

    Raises
    ------
    TracingCheckError
        If the second trace has other operators.
    Error
        If the call cannot be recorded.
    RuntimeError
        If there are no arguments.

    Examples
    --------
    >>> import candelabra
    >>> traced = candelabra.jit.trace(lambda x: x * 2, candelabra.ones(2))
    >>> traced(candelabra.ones(3))
    tensor([2., 2., 2.])
    """
    if isinstance(func, ScriptModule | ScriptFunction) and not hasattr(func, "_recordable"):
        return func
    if isinstance(example_inputs, dict) and example_kwarg_inputs is None:
        example_inputs, example_kwarg_inputs = None, example_inputs
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict, or example_inputs a tensor or a tuple")
    args = () if example_inputs is None else example_inputs
    args = tuple(args) if isinstance(args, list | tuple) else (args,)
    kwargs = dict(example_kwarg_inputs or {})
    made: Any
    if isinstance(func, nn.Module):
        made = TopLevelTracedModule(getattr(func, "_original", func))
        traced: Traced = made._traced
    else:
        made = ScriptFunction(func)
        traced = made._traced = Traced(made._recordable)
    made._recordable.note(args, kwargs)
    traced.prepare(args, kwargs)
    if check_trace:
        for given in [args, *(check_inputs or [])]:
            if isinstance(given, dict):
                _check(traced, (), given, check_tolerance)
                continue
            given = tuple(given) if isinstance(given, list | tuple) else (given,)
            _check(traced, given, kwargs, check_tolerance)
    return made


def _check(traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: float) -> None:
    """Trace again, and compare the operators; and the results where no state changes."""
    recordable: Recordable = traced.recordable
    first = traced.prepare(args, kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        second = traced.recorded(args, kwargs)
    difference = _difference(first._program, second)
    if difference:
        raise TracingCheckError(
            f"Tracing failed sanity checks: {recordable.name} computes other operators when it is called again: {difference}"
        )
    if second.written or (recordable.module is not None and recordable.module.training):
        return
    state = candelabra.get_rng_state()
    with candelabra.no_grad():
        expected = recordable.function(*args, **kwargs)
        candelabra.set_rng_state(state)
        found = first.forward(*args, **kwargs)
        candelabra.set_rng_state(state)
    pairs = zip(pytree.tree_leaves(expected), pytree.tree_leaves(found), strict=True)
    for number, (a, b) in enumerate(pairs, 1):
        same = candelabra.allclose(a, b, tolerance, tolerance, equal_nan=True) if isinstance(a, Tensor) else a == b
        if not same:
            _C.warn(
                f"Output nr {number}. of the traced function does not match the corresponding output of the Python function.",
                TracerWarning,
            )


def _difference(first: Graph, second: Graph) -> str:
    """Return where two graphs differ, or an empty text."""
    for a, b in zip(first.nodes, second.nodes, strict=False):
        if a.op != b.op or a.args != b.args or a.kwargs != b.kwargs:
            return f"{a.place()} became {b.place()}" if a.op != b.op else f"{a.place()} has other arguments"
    if len(first.nodes) != len(second.nodes):
        return f"{len(first.nodes)} operators became {len(second.nodes)}"
    return ""


def trace_module(
    mod: nn.Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: list[dict[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Trace ``forward`` of a module, whose arguments are ``inputs["forward"]``; see `trace`.

    Parameters
    ----------
    mod
        The module.
    inputs, check_inputs
        Arguments by the name of the method: a tensor, a tuple, or a dict by name if
        `example_inputs_is_kwarg`.
    check_trace, check_tolerance, strict
        As for `trace`.
    optimize, _force_outplace, _module_class, _compilation_unit, _store_inputs
        Accepted for compatibility.

    Raises
    ------
    AttributeError
        If the inputs are not a dict.
    NotImplementedError
        If there are other methods.
    """
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for given in (inputs, *(check_inputs or [])):
        if set(given) != {"forward"}:
            raise NotImplementedError(
                f"jit.trace_module(): only forward is traced, not {sorted(set(given) - {'forward'})}"
            )
    example = inputs["forward"]
    return trace(
        mod,
        None if example_inputs_is_kwarg else example,
        check_trace=check_trace,
        check_inputs=[given["forward"] for given in check_inputs or []],
        check_tolerance=check_tolerance,
        example_kwarg_inputs=example if example_inputs_is_kwarg else None,
    )


def freeze(
    mod: Any,
    preserved_attrs: list[str] | None = None,
    optimize_numerics: bool = True,
) -> FrozenModule:
    """Return a module without parameters, that has a copy of those of a recorded module.

    Parameters
    ----------
    mod
        What `script`, `trace` or `load` has made, in the mode `eval`.
    preserved_attrs
        Names of attributes and methods that the result has as well.
    optimize_numerics
        Accepted for compatibility: numbers are not changed.

    Raises
    ------
    AttributeError
        If the module has no attribute of such a name.
    RuntimeError
        If it is no recorded module, or in the mode `train`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> frozen = candelabra.jit.freeze(candelabra.jit.script(nn.ReLU().eval()))
    >>> frozen(-candelabra.ones(2))
    tensor([0., 0.])
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use candelabra.jit.script or candelabra.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    if isinstance(mod, FrozenModule):
        return mod
    return FrozenModule(copy.deepcopy(mod), [name for name in preserved_attrs or () if name != "forward"])


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> FrozenModule:
    """Return a frozen module, which has the methods `other_methods` too; see `freeze`."""
    return freeze(mod.eval() if isinstance(mod, ScriptModule) else mod, other_methods)


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Do nothing: replays of a module are as fast as those of a frozen one."""
