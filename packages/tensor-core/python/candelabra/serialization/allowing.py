"""Classes and functions that the user allows in PyTorch's files."""

from __future__ import annotations

import threading
from types import TracebackType

from .pytorch_names import in_pytorch, names_in_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Global = Callable[..., Any] | tuple[Callable[..., Any], str]

_ALLOWED: dict[str, Any] = {}
_LOCK = threading.Lock()


def _entries(safe_globals: list[Global]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for given in safe_globals:
        if isinstance(given, tuple):
            if len(given) != 2 or not isinstance(given[1], str):
                raise ValueError(
                    f"Expected a class or a function, or a pair of it and its full name, but got {given!r}"
                )
            found[given[1]] = given[0]
        elif hasattr(given, "__module__") and hasattr(given, "__qualname__"):
            found.update(dict.fromkeys(names_in_files(given), given))
        else:
            raise TypeError(f"Expected a class or a function, or a pair of it and its full name, but got {given!r}")
    return found


def allowed(module: str, name: str) -> Any:
    """Return the object that the user has allowed under this name, or None."""
    return _ALLOWED.get(f"{module}.{name}")


def is_allowed(thing: Any) -> bool:
    """Return whether the user has allowed a class or a function."""
    return any(found is thing for found in _ALLOWED.values())


def add_safe_globals(safe_globals: list[Global]) -> None:
    """Allow classes and functions in files of PyTorch. A file may then call them with any
    arguments.

    Files never import anything: only these objects are found, under their names.

    Parameters
    ----------
    safe_globals
        Classes and functions, or pairs of an object and its full name in files.

    Examples
    --------
    >>> import candelabra, fractions
    >>> candelabra.serialization.add_safe_globals([fractions.Fraction])
    >>> candelabra.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> candelabra.serialization.clear_safe_globals()
    """
    with _LOCK:
        _ALLOWED.update(_entries(safe_globals))


def get_safe_globals() -> list[Global]:
    """Return the objects that :func:`add_safe_globals` has allowed.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.get_safe_globals()
    []
    """
    found: list[Global] = []
    for name, thing in _ALLOWED.items():
        own = (getattr(thing, "__module__", ""), getattr(thing, "__qualname__", ""))
        if name == ".".join(own):
            found.append(thing)
        elif ".".join(own) not in _ALLOWED or name != ".".join(in_pytorch(*own)):
            found.append((thing, name))
    return found


def clear_safe_globals() -> None:
    """Remove all allowed objects.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.serialization.clear_safe_globals()
    """
    with _LOCK:
        _ALLOWED.clear()


class safe_globals:
    """Context manager that allows classes and functions, as :func:`add_safe_globals` does.

    Examples
    --------
    >>> import candelabra, fractions
    >>> with candelabra.serialization.safe_globals([fractions.Fraction]):
    ...     len(candelabra.serialization.get_safe_globals())
    1
    """

    def __init__(self, safe_globals: list[Global]) -> None:
        self._added = _entries(safe_globals)
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        with _LOCK:
            self._before = dict(_ALLOWED)
            _ALLOWED.update(self._added)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        with _LOCK:
            _ALLOWED.clear()
            _ALLOWED.update(self._before)
