"""Hooks: functions that are called before or after a step."""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from candelabra import _C
from candelabra.hooks import RemovableHandle

#: Hooks that run for every optimizer.
global_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
global_post: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def add(
    table: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Add `hook` to a table, at the end, or at the front with `prepend`."""
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    return add(global_pre, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return add(global_post, hook)


def refuse_unless_live(optimizer: Any) -> None:
    """End the recording of a compiled program if it could not repeat the step of this optimizer."""
    if not getattr(optimizer, "_live_options", ()):
        _C.refuse_recording(f"{type(optimizer).__name__}.step() computes with Python numbers that change")
    elif global_pre or global_post or optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        _C.refuse_recording(f"{type(optimizer).__name__} has step hooks")


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `step` so that it runs the hooks and appears in profiles under PyTorch's name."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        if _C.is_recording():
            refuse_unless_live(self)
        profiler = sys.modules.get("candelabra.autograd.profiler")
        if profiler is None:  # the profiler is not loaded, so no profile is being recorded
            return around(self, args, kwargs)
        with profiler.record_function(f"Optimizer.step#{type(self).__name__}.step"):
            return around(self, args, kwargs)

    def around(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        pre, post = tables(self)
        if not (pre or post or global_pre or global_post) or self.__dict__.get("_stepping"):
            return step(self, *args, **kwargs)
        # A step that calls the step of its base class runs the hooks once.
        self._stepping = True
        try:
            return call(self, args, kwargs)
        finally:
            del self._stepping

    def tables(self: Any) -> tuple[Any, Any]:
        # Subclasses that skip Optimizer.__init__() have no tables and take no hooks.
        return (
            getattr(self, "_optimizer_step_pre_hooks", None) or {},
            getattr(self, "_optimizer_step_post_hooks", None) or {},
        )

    def call(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        pre, post = tables(self)
        for hook in (*global_pre.values(), *pre.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        out = step(self, *args, **kwargs)
        for hook in (*post.values(), *global_post.values()):
            hook(self, args, kwargs)
        return out

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked
