"""``__torch_dispatch__``: classes and modes that compute operators.

A subclass of Tensor that defines the class method ``__torch_dispatch__(cls, func, types, args=(),
kwargs=None)`` is given every operator that gets an object of it. `func` is the operator, such as
``candelabra.ops.aten.mul.Tensor``. It stands in a kernel's place: below autograd, which records the
operator, and below functions made of operators. Subclasses without memory are made by
``Tensor._make_wrapper_subclass``.
"""

from __future__ import annotations

import contextlib
from inspect import getattr_static

from candelabra import _C
from candelabra.composite.methods.tensor_protocol import tensor_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = [
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """A context in which all operators go to ``__torch_dispatch__`` of the mode, of this thread.

    Within it, the mode itself is off: what it calls goes to the modes around it.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.python_dispatch import TorchDispatchMode
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = candelabra.ones(2, 2)
    >>> with Names():
    ...     y = x @ x + 1
    aten.mm.default
    aten.add.Tensor
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        if isinstance(getattr_static(type(self), "__torch_dispatch__"), classmethod):
            raise RuntimeError(
                f"{type(self).__name__}'s __torch_dispatch__: classmethod is not supported, please make it a plain method"
            )
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


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether this thread is within a mode.

    Parameters
    ----------
    include_infra_modes : bool
        Whether modes that say so by `is_infra_mode` count.

    Examples
    --------
    >>> from candelabra.python_dispatch import TorchDispatchMode, is_in_torch_dispatch_mode
    >>> with TorchDispatchMode():
    ...     is_in_torch_dispatch_mode()
    True
    """
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _C.torch_dispatch_modes())


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


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what an operator must return, where ``__torch_dispatch__`` of a wrapper computed
    `out`.

    An operator that writes to an argument returns this argument. The result of a view shares the
    storage of its argument, so that programs that compare storages see the view.

    Parameters
    ----------
    func : Operator
        As ``__torch_dispatch__`` was given it.
    args, kwargs
        The arguments, with the wrappers.
    out
        The result: wrappers again, or a tuple or list of them.

    Raises
    ------
    RuntimeError
        If the result of a view reaches beyond the storage of its argument.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.python_dispatch import return_and_correct_aliasing
    >>> x = candelabra.ones(2)
    >>> return_and_correct_aliasing(candelabra.ops.add_, (x, 1), {}, candelabra.ones(2)) is x
    True
    """
    if kwargs and kwargs.get("out") is not None:
        return kwargs["out"]
    if func.functional is not None:
        return args[0] if args else kwargs["self"]
    if "(a)" in func.schema:
        source = args[0] if args else kwargs["self"]
        for view in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(view, _C.Tensor) and isinstance(source, _C.Tensor):
                _share_storage(view, source)
    return out


def _share_storage(view: Any, source: Any) -> None:
    if type(view) is _C.Tensor or view.untyped_storage() is source.untyped_storage():
        return  # a plain tensor is a view already
    storage = source.untyped_storage()
    last = sum((size - 1) * step for size, step in zip(view.shape, view.stride())) + view.storage_offset()
    if view.numel() and (last + 1) * view.dtype.itemsize > storage.nbytes():
        raise RuntimeError(
            f"return_and_correct_aliasing(): a view of sizes {list(view.shape)} and strides {list(view.stride())} reaches beyond the "
            f"{storage.nbytes()} bytes of its argument"
        )
    flat = _C.tensor_on_storage(storage, _C.uint8)
    view.data = tensor_on(flat, view.dtype, view.shape, view.stride(), view.storage_offset())
