"""`candelabra.compile`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .building import planning_of
from .compiled import compile_function

BACKENDS = ("replay", "inductor", "aot_eager", "eager", "cudagraphs")
_default: str | None = None


def set_default_backend(backend: str | None) -> None:
    """Set the backend that `compile` takes without ``backend``; None for ``"replay"``.

    Raises
    ------
    ValueError
        If it is unknown.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.compiler.set_default_backend("eager")
    >>> candelabra.compiler.get_default_backend()
    'eager'
    >>> candelabra.compiler.set_default_backend(None)
    """
    global _default
    if backend is not None:
        _check_backend(backend)
    _default = backend


def get_default_backend() -> str:
    """Return the backend that `compile` takes without ``backend``."""
    return _default or BACKENDS[0]


def _check_backend(backend: Any) -> None:
    if callable(backend):
        raise ValueError("backend= takes a name: functions of FX graphs are not supported")
    if backend not in BACKENDS:
        raise ValueError(f"Unknown backend {backend!r}; there are {', '.join(BACKENDS)}")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    shapes_spec: Any = None,
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
        ``"replay"``, unless `set_default_backend` was called. PyTorch's names ``"inductor"``,
        ``"aot_eager"``, ``"eager"`` and ``"cudagraphs"`` mean the same, except that ``"eager"``
        runs the function as written.
    mode
        ``None``, ``"default"``, ``"reduce-overhead"``, ``"max-autotune"`` or
        ``"max-autotune-no-cudagraphs"``. The last two allow operators that the backend compiles
        together to differ from its kernels within rounding errors; the others are exact.
    options
        ``{"debug_memory": True}`` gives every intermediate tensor memory of its own, and poisons it
        after its last use. Other options are ignored, as PyTorch's are for its compiler only.
    name
        What warnings call the function; by default its qualified name.
    disable
        Return the function as it is.
    shapes_spec
        Not supported, because every signature has its own program; must be None.

    Returns
    -------
    Callable
        The compiled function, or an `OptimizedModule`.

    Raises
    ------
    ValueError
        If the mode or the backend is unknown.
    NotImplementedError
        If there is a `shapes_spec`.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.compile
    ... def double(x):
    ...     return x + x
    >>> [double(candelabra.tensor([float(i)])).item() for i in range(5)]
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    planning = planning_of(mode, bool((options or {}).get("debug_memory", False)))
    backend = get_default_backend() if backend is None else backend
    _check_backend(backend)
    if shapes_spec is not None:
        raise NotImplementedError("compile(): shapes_spec= is not supported: every signature has its own program")
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            name=name,
            disable=disable,
        )
    if not callable(model):
        raise TypeError(f"compile() takes a function or a module, not {type(model).__name__}")
    if disable or backend == "eager":
        return model
    if hasattr(model, "named_parameters"):
        # Compiling functions needs no candelabra.nn.
        from .optimized_module import OptimizedModule

        return OptimizedModule(model, fullgraph=fullgraph, planning=planning, name=name)
    if getattr(model, "_candelabra_disabled", False):
        return model
    return compile_function(model, fullgraph, planning, name)
