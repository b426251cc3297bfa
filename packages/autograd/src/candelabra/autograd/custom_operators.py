"""Autograd functions of custom operators (:mod:`candelabra.library`).

These autograd functions are built from the same parts as :class:`~.function.Function`. The result
already exists, because the core has called the kernel. Custom operators are therefore recorded in
every layer, including within function transforms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from .function import Function, _finish, _prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .function import FunctionNode

#: Structure entry for a single value. The entry for a list of tensors is its length.
_ONE = -1


def _flattened(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Flatten lists of tensors among `values`; also return the length of each list."""
    flat: list[Any] = []
    structure: list[int] = []
    for value in values:
        if isinstance(value, (list, tuple)) and any(isinstance(entry, Tensor) for entry in value):
            flat.extend(value)
            structure.append(len(value))
        else:
            flat.append(value)
            structure.append(_ONE)
    return flat, structure


def _regrouped(flat: Sequence[Any], structure: Sequence[int]) -> list[Any]:
    """Undo `_flattened`."""
    made: list[Any] = []
    at = 0
    for count in structure:
        if count == _ONE:
            made.append(flat[at])
            at += 1
        else:
            made.append(list(flat[at : at + count]))
            at += count
    return made


def autograd_function_of(
    operator: Any, backward: Callable[..., Any] | None, setup_context: Callable[..., Any] | None
) -> Callable[..., Any]:
    """Return the autograd function of a custom operator.

    It is called as ``autograd_function(result, *arguments)`` and returns `result`. If `backward` is
    None, results still require grad, but a backward pass through them raises an error.
    """
    positional = operator.positional_count
    keyword_only = operator.parameters[positional:]
    lists = [kind.endswith("]") for kind in operator.parameter_types[:positional]]
    name = operator.name
    title = f"GeneratedBackwardFor_{name.replace('::', '_').replace('.', '_')}_default"

    def walk_back(ctx: Any, *gradients: Any) -> Any:
        if backward is None:
            raise RuntimeError(
                f"Trying to backward through {name} but no autograd formula was registered. Please use "
                "candelabra.library.register_autograd to add one."
            )
        given = [None if kind is None else part for kind, part in zip(ctx.result_kinds, gradients, strict=True)]
        made = backward(ctx, *_regrouped(given, ctx.result_structure))
        several = list(made) if isinstance(made, (tuple, list)) and not _is_one_list(made, ctx.structure) else [made]
        while len(several) > len(ctx.structure) and several[-1] is None:
            several.pop()
        if len(several) != len(ctx.structure):
            raise RuntimeError(
                f"function {title}Backward returned an incorrect number of gradients (expected {len(ctx.structure)}, got {len(several)})"
            )
        flat: list[Any] = []
        for position, (part, count) in enumerate(zip(several, ctx.structure, strict=True)):
            if count == _ONE:
                flat.append(part)
            elif part is None:
                flat.extend([None] * count)
            elif isinstance(part, (list, tuple)) and len(part) == count:
                flat.extend(part)
            else:
                raise RuntimeError(
                    f"Expected the gradient returned from backward of {name} for argument {position}, a list of {count} tensors, to be a "
                    f"list of {count}, but got {type(part).__name__}"
                    + (f" of {len(part)}" if isinstance(part, (list, tuple)) else "")
                )
        return tuple(flat)

    metaclass: Any = type(Function)
    function: Any = metaclass(title, (Function,), {"backward": staticmethod(walk_back), "__module__": __name__})

    def record(result: Any, *arguments: Any) -> Any:
        inputs = tuple(
            list(value) if is_list and isinstance(value, tuple) else value
            for value, is_list in zip(arguments, lists, strict=False)
        )
        named = dict(zip(keyword_only, arguments[positional:], strict=True))
        flat, structure = _flattened(inputs)
        several = isinstance(result, (tuple, list))
        results, result_structure = _flattened((result,) if isinstance(result, list) or not several else result)
        node: FunctionNode = function._backward_cls()
        recording = _prepare(node, tuple(flat))
        context: Any = node
        context.structure, context.result_structure = structure, result_structure
        context.result_kinds = [True if isinstance(part, Tensor) else None for part in results]
        node.needs_input_grad = tuple(_regrouped(node.needs_input_grad, structure))
        if setup_context is not None:
            before = candelabra._C.set_grad_enabled(False)
            try:
                if keyword_only:
                    setup_context(ctx=node, inputs=inputs, keyword_only_inputs=named, output=result)
                else:
                    setup_context(node, inputs, result)
            finally:
                candelabra._C.set_grad_enabled(before)
        _finish(node, tuple(flat), results, recording)
        return result

    return record


def _is_one_list(made: Any, structure: Sequence[int]) -> bool:
    """Return whether `made` is the gradient list of the only list argument."""
    return (
        len(structure) == 1
        and structure[0] != _ONE
        and len(made) == structure[0]
        and not isinstance(made[0], (list, tuple))
    )
