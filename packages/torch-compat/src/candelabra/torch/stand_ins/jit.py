"""``torch.jit``: decorators that return their argument, because there is no compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

__all__ = [
    "Final", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "load", "optimize_for_inference",
    "save", "script", "script_if_tracing", "script_method", "trace", "unused", "wait",
]  # fmt: skip

T = TypeVar("T")
from typing import Final  # noqa: E402  (TorchScript's Final is Python's)


def script(obj: T, *arguments: Any, **options: Any) -> T:
    """Return the function, class or module unchanged.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.jit import script
    >>> script(len)("ab")
    2
    """
    return obj


def _as_it_is(obj: T) -> T:
    """Return the argument unchanged."""
    return obj


export = interface = script_if_tracing = script_method = unused = _as_it_is


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return the function unchanged; also usable as a decorator with options."""
    return drop if callable(drop) else _as_it_is


def trace(func: T, example_inputs: Any = None, *arguments: Any, **options: Any) -> T:
    """Return the function or module unchanged; it runs eagerly for any inputs."""
    return func


def freeze(mod: T, *arguments: Any, **options: Any) -> T:
    """Return the module unchanged."""
    return mod


optimize_for_inference = freeze


def is_scripting() -> bool:
    """Return False, because nothing is compiled."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; the type only matters for a compiler."""
    return the_value


def fork(func: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call the function immediately and return its result."""
    return func(*arguments, **keywords)


def wait(future: T) -> T:
    """Return the result of `fork`."""
    return future


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.jit.{name}(): there are no compiled programs on Candelabra; save and load the state dict with torch.save and torch.load"
        )

    refuse.__name__ = name
    return refuse


save, load = _refuse("save"), _refuse("load")
