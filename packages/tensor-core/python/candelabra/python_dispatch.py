"""``__torch_dispatch__``: classes and modes that compute operators.

A subclass of Tensor that defines the class method ``__torch_dispatch__(cls, func, types, args=(),
kwargs=None)`` is given every operator that gets an object of it. `func` is the operator, as in
``candelabra.ops``. It stands in a kernel's place: below autograd, which records the operator, and
below functions made of operators. Subclasses without memory are made by
``Tensor._make_wrapper_subclass``.
"""

from __future__ import annotations

import contextlib

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "transform_subclass"]


class TorchDispatchMode:
    """A context in which all operators go to ``__torch_dispatch__`` of the mode, of this thread.

    Within it, the mode itself is off: what it calls goes to the modes around it.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.python_dispatch import TorchDispatchMode
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func.name)
    ...         return func(*args, **(kwargs or {}))
    >>> x = candelabra.ones(2, 2)
    >>> with Names():
    ...     y = x @ x + 1
    mm
    add
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _C.push_torch_dispatch_mode(self)
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        _C.pop_torch_dispatch_mode()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return whether the mode is a part of PyTorch's compiler: False."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls every operator as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **({} if kwargs is None else kwargs))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    modes = _C.torch_dispatch_modes()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_C.torch_dispatch_modes())


def _len_torch_dispatch_stack() -> int:
    return len(_C.torch_dispatch_modes())


def _push_mode(mode: TorchDispatchMode) -> None:
    _C.push_torch_dispatch_mode(mode)


def _pop_mode() -> TorchDispatchMode:
    return _C.pop_torch_dispatch_mode()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchDispatchMode]:
    old = _pop_mode()
    try:
        yield old
    finally:
        _push_mode(old)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    old = _get_current_dispatch_mode_stack()
    for _ in old:
        _pop_mode()
    try:
        yield old
    finally:
        for mode in old:
            _push_mode(mode)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return whether a tensor is of a class that says which tensors it wraps.

    Such a class has ``__tensor_flatten__`` and ``__tensor_unflatten__``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.python_dispatch.is_traceable_wrapper_subclass(candelabra.ones(2))
    False
    """
    return (
        isinstance(t, _C.Tensor)
        and type(t) is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return a wrapper tensor whose wrapped tensors are those that `callback` returns for them.

    Parameters
    ----------
    t : Tensor
        Of a class with ``__tensor_flatten__`` and ``__tensor_unflatten__``.
    callback : callable
        Takes the name of an attribute and its tensor.
    outer_size, outer_stride : optional
        The geometry of the result; by default that of `t`.
    """
    attributes, context = t.__tensor_flatten__()
    made = {name: callback(name, getattr(t, name)) for name in attributes}
    return type(t).__tensor_unflatten__(
        made,
        context,
        t.size() if outer_size is None else outer_size,
        t.stride() if outer_stride is None else outer_stride,
    )
