"""``torch._custom_ops``: the older interface to custom operators, by `candelabra.library`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from candelabra import library
from candelabra.library import get_ctx, infer_schema

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward", "infer_schema"]

#: What operators save for their gradients, until both functions of an operator are given.
_saving: dict[str, Callable[..., Any]] = {}


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an operator by a function with annotations, or by the text of its schema.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.operators.custom_ops import custom_op, impl
    >>> custom_op("docs_old::twice", "(Tensor x) -> Tensor")
    >>> _ = impl("docs_old::twice")(lambda x: 2 * x)
    >>> candelabra.ops.docs_old.twice(candelabra.ones(2))
    tensor([2., 2.])
    """
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        library.define(qualname, infer_schema(function, mutates_args=()))
        return function

    return define if func_or_schema is None else define(func_or_schema)


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Any = None) -> Any:
    """Register the kernel of an operator for device types."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        types = [device_types] if isinstance(device_types, str) else list(device_types)
        library.register_kernel(qualname, types, function)
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Register the function that describes the results of an operator."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        library.register_fake(qualname, function)
        return function

    return register if func is None else register(func)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Register what an operator saves for its gradient: a function of its inputs, as attributes,
    and its result.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _saving[qualname] = function
        return function

    return register if func is None else register(func)


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Register the gradient of an operator: a function of the context, of what was saved, and of
    the gradients of the results. It returns a dict of gradients by the names of inputs.

    Raises
    ------
    RuntimeError
        If `impl_save_for_backward` was not called before.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if qualname not in _saving:
            raise RuntimeError(f"impl_backward('{qualname}'): call impl_save_for_backward('{qualname}') before it")
        names = library.operator_named(qualname).parameters
        saving = _saving.pop(qualname)

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            from types import SimpleNamespace

            ctx.saved_by_rule = saving(SimpleNamespace(**dict(zip(names, inputs, strict=False))), output)

        def backward(ctx: Any, *grads: Any) -> Any:
            found = function(ctx, ctx.saved_by_rule, *grads)
            return tuple(found.get(name) for name in names)

        library.register_autograd(qualname, backward, setup_context=setup_context)
        return function

    return register if func is None else register(func)
