"""The batch rules that custom functions and custom operators define.

vmap sees a custom function or operator as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from candelabra import Tensor

from ..function import Function, listed, require_setup_context
from ..functorch_layers import entered, outside, split_arguments
from ..structure import broadcast_prefix, flatten, unflatten
from .batch_shapes import Batched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .vmap_layer import VmapLayer


class VmapInfo(NamedTuple):
    """Information about the batch, passed to a custom function's ``vmap``."""

    batch_size: int
    randomness: str


def apply_batched(function: type[Function], arguments: tuple[Any, ...], layer: VmapLayer) -> Any:
    """Apply a custom function to tensors of `layer`, by its ``vmap`` or by a generated rule."""
    own_rule = function.vmap is not Function.vmap
    if own_rule and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overriden vmap staticmethod. Please set "
            "generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid ambiguity."
        )
    if not own_rule and not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and implement the vmap staticmethod "
            "or set generate_vmap_rule=True."
        )
    leaves, structure = flatten(arguments)
    pairs = [layer.value_of(leaf) if isinstance(leaf, Tensor) else (leaf, None) for leaf in leaves]
    values = [value for value, _ in pairs]
    dims = [bdim for _, bdim in pairs]
    if own_rule:
        with outside():
            output, out_dims = function.vmap(
                VmapInfo(layer.size, layer.randomness), unflatten(dims, structure), *unflatten(values, structure)
            )
        results, result_structure = flatten(output)
        places = broadcast_prefix(out_dims, result_structure)
        if places is None:
            raise RuntimeError(f"{function.__name__}.vmap: the out_dims {out_dims} do not fit what it returned")
        return unflatten(
            [
                layer.wrap(part, place) if isinstance(part, Tensor) else part
                for part, place in zip(results, places, strict=True)
            ],
            result_structure,
        )
    require_setup_context(function)
    generated, shape = _generated(function, layer.again, dims)
    with outside():
        output = generated.apply(*values)
    results, _ = listed(output)
    made = [layer.wrap(part, 0) if isinstance(part, Tensor) else part for part in results]
    return tuple(made) if shape["several"] else made[0]


def _wrapped(layer: VmapLayer, value: Any, dim: int | None) -> Any:
    return layer.wrap(value, dim) if isinstance(value, Tensor) and dim is not None else value


def _in_front(layer: VmapLayer, part: Any) -> Any:
    if not isinstance(part, Tensor):
        return part
    with outside():
        return layer.front(part)


def _generated(
    function: type[Function], new_level: Callable[[], VmapLayer], dims: Sequence[int | None]
) -> tuple[type[Function], dict[str, Any]]:
    """Return a function on batches whose methods run those of `function` within vmap.

    Each method enters a layer of its own.
    """
    shape: dict[str, Any] = {"several": False}

    class Generated(Function):
        @staticmethod
        def forward(*inputs: Any) -> Any:
            layer = new_level()
            with entered(layer):
                output = function.forward(
                    *(_wrapped(layer, value, dim) for value, dim in zip(inputs, dims, strict=True))
                )
                results, shape["several"] = listed(output)
                return tuple(_in_front(layer, part) for part in results)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            layer = new_level()
            inner = ctx.inner = function._backward_cls()
            inner.needs_input_grad = ctx.needs_input_grad
            with entered(layer):
                own = tuple(_wrapped(layer, value, dim) for value, dim in zip(inputs, dims, strict=True))
                results = [_wrapped(layer, part, 0) for part in output]
                function.setup_context(inner, own, tuple(results) if shape["several"] else results[0])
                kept = [(None, None) if part is None else layer.value_of(part) for part in inner.to_save]
                ctx.mark_non_differentiable(
                    *(
                        part
                        for part, own_part in zip(output, results, strict=True)
                        if any(own_part is one for one in inner.non_differentiable)
                    )
                )
            ctx.set_materialize_grads(inner.materialize_grads)
            ctx.dims_of_saved = [bdim for _, bdim in kept]
            ctx.save_for_backward(*(value for value, _ in kept))
            ctx.save_for_forward(*(value for value, _ in kept))

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            layer = new_level()
            with entered(layer):
                ctx.inner.restore(
                    [_wrapped(layer, part, dim) for part, dim in zip(ctx.saved_tensors, ctx.dims_of_saved, strict=True)]
                )
                made = function.backward(ctx.inner, *(_wrapped(layer, part, 0) for part in gradients))
                parts = list(made) if isinstance(made, (tuple, list)) else [made]
                results = []
                for part, dim in zip(parts, dims, strict=True):
                    if not isinstance(part, Tensor):
                        results.append(part)
                        continue
                    with outside():
                        value = layer.front(part)
                        results.append(value.sum(0) if dim is None else value.movedim(0, dim))
            return tuple(results)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            layer = new_level()
            with entered(layer):
                ctx.inner.restore(
                    [_wrapped(layer, part, dim) for part, dim in zip(ctx.saved_tensors, ctx.dims_of_saved, strict=True)]
                )
                moved, _ = listed(
                    function.jvp(
                        ctx.inner, *(_wrapped(layer, part, dim) for part, dim in zip(tangents, dims, strict=True))
                    )
                )
                return tuple(_in_front(layer, part) for part in moved)

    Generated.__name__ = Generated.__qualname__ = f"Vmapped{function.__name__}"
    return Generated, shape


# ---- custom operators


def batch_rule_of(operator: Any) -> Callable[..., Any] | None:
    """Return the vmap rule set by `candelabra.library.register_vmap`, or None if there is none."""
    rule = getattr(operator, "vmap_rule", None)
    return None if rule is None else _batch_rule(rule)


def _batch_rule(function: Callable[..., Any]) -> Callable[..., Any]:
    def rule(layer: Any, operator: Any, arguments: tuple[Any, ...]) -> Any:
        def split_batch(value: Any) -> tuple[Any, Any]:
            if isinstance(value, Tensor):
                return layer.value_of(value)
            if isinstance(value, (list, tuple)) and any(isinstance(entry, Tensor) for entry in value):
                pairs = [split_batch(entry) for entry in value]
                return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            return value, None

        pairs = [split_batch(argument) for argument in arguments]
        positional, named = split_arguments(operator, tuple(pair[0] for pair in pairs))
        in_dims = tuple(pair[1] for pair in pairs)[: len(positional)]
        made = function(VmapInfo(layer.size, layer.randomness), in_dims, *positional, **named)
        if not isinstance(made, tuple) or len(made) != 2:
            raise RuntimeError(
                f"{operator.name}: the function of register_vmap must return a pair, the results and where the batch is in each, but "
                f"returned {type(made).__name__}"
            )
        output, out_dims = made
        results, structure = flatten(output)
        places = broadcast_prefix(out_dims, structure)
        if places is None:
            raise RuntimeError(f"{operator.name}: the out_dims {out_dims} of register_vmap do not fit what it returned")
        wrapped = [
            Batched(part, place) if isinstance(part, Tensor) else part
            for part, place in zip(results, places, strict=True)
        ]
        if not isinstance(output, (tuple, list)):
            return wrapped[0]
        if isinstance(output, list):
            return [layer.wrap(part.value, part.bdim) if isinstance(part, Batched) else part for part in wrapped]
        return tuple(wrapped)

    return rule
