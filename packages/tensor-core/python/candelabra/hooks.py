"""Handles of hooks, which tensors, nodes, modules and optimizers return when one is registered."""

from __future__ import annotations

import weakref
from collections import OrderedDict

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from candelabra._C import Tensor

    F = TypeVar("F")

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """A handle that removes a hook: call `remove`, or use it as a context manager.

    Parameters
    ----------
    hooks_dict
        The hooks by number, in a dictionary that can be weakly referenced. The hook is to be put
        there under the handle's `id`.
    extra_dict
        A dictionary, or a list of some, from which `remove` removes the number too.

    Examples
    --------
    >>> import collections
    >>> from candelabra.hooks import RemovableHandle
    >>> hooks = collections.OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self._take_number()
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self.extra_dict_ref = tuple(map(weakref.ref, extra))

    def _take_number(self) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def remove(self) -> None:
        """Remove the hook. Repeated calls have no effect."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # Files of old versions have no third entry. If a table is gone, refer to a temporary empty
        # one, so that the new weak reference is dead too.
        tables = (state[0], *(state[2] if len(state) > 2 and state[2] else ()))
        self.hooks_dict_ref, *extra = (weakref.ref(OrderedDict() if table is None else table) for table in tables)
        self.extra_dict_ref = tuple(extra)
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def unserializable_hook(f: F) -> F:
    """Mark a hook of a tensor: no warning says that it is not saved with the tensor."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of the hooks of a tensor that are not saved with it."""
    hooks: Any = getattr(tensor, "_backward_hooks", None)
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            _C.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                "@torch.utils.hooks.unserializable_hook to suppress this warning",
            )
