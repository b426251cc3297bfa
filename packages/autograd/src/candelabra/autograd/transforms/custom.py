"""Custom functions within function transforms.

Each layer sees the function as a whole and uses the gradient, tangent or batch rule it defines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import _C, Tensor

from ..structure import broadcast_prefix, flatten, unflatten
from .functorch_layers import Wrapper, _state, entered, outside
from .grad_layer import GradLayer
from .jvp_layer import JvpLayer
from .vmap_layer import VmapLayer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..function import Function
    from .functorch_layers import FunctorchLayer


class VmapInfo(NamedTuple):
    """Information about the batch, passed to a custom function's ``vmap``."""

    batch_size: int
    randomness: str


def layer_of(arguments: tuple[Any, ...]) -> FunctorchLayer | None:
    """Return the innermost layer that any argument belongs to."""
    found: FunctorchLayer | None = None
    for argument in arguments:
        while isinstance(argument, Wrapper):
            layer = argument._layer
            if layer.alive:
                if found is None or layer.number > found.number:
                    found = layer
                break
            argument = argument._value
    return found


def apply_within(
    function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any], layer: FunctorchLayer
) -> Any:
    """Apply a custom function to tensors of `layer`."""
    depth = _state.depth
    _state.depth = layer.number
    try:
        if isinstance(layer, GradLayer):
            return _taped(function, arguments, keywords, layer)
        if isinstance(layer, JvpLayer):
            return _dual(function, arguments, keywords, layer)
        assert isinstance(layer, VmapLayer)
        return _batched(function, arguments, layer)
    finally:
        _state.depth = depth


def _require_setup_context(function: type[Function]) -> None:
    from ..function import Function

    if function.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context "
            "staticmethod."
        )


def _several(output: Any) -> tuple[list[Any], bool]:
    return (list(output), True) if isinstance(output, (tuple, list)) else ([output], False)


def _taped(function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any], layer: GradLayer) -> Any:
    from ..function import record_application

    _require_setup_context(function)
    inner = tuple(map(layer.unwrap, arguments))
    before = _C.set_grad_enabled(layer.outer_mode)
    try:
        with outside():
            output = function.apply(*inner, **keywords)
    finally:
        _C.set_grad_enabled(before)
    results, several = _several(output)
    given = {
        id(value): argument for value, argument in zip(inner, arguments, strict=True) if isinstance(argument, Tensor)
    }
    results = [
        given[id(part)] if id(part) in given else layer.wrap(part) if isinstance(part, Tensor) else part
        for part in results
    ]
    made = record_application(function, tuple(map(layer.lift, arguments)), results, several)
    return tuple(made) if several else made[0]


def _dual(function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any], layer: JvpLayer) -> Any:
    from ..function import Function, run_forward

    primals = tuple(map(layer.unwrap, arguments))
    tangents = [layer.tangent_of(argument) if isinstance(argument, Tensor) else None for argument in arguments]
    with outside():
        output, node = run_forward(function, primals, keywords)
        results, several = _several(output)
        moved: list[Any] = [None] * len(results)
        if any(tangent is not None for tangent in tangents):
            if function.jvp is Function.jvp:
                function.jvp(node, *tangents)
            if node.materialize_grads:
                tangents = [
                    candelabra.zeros_like(primal) if tangent is None and isinstance(primal, Tensor) else tangent
                    for primal, tangent in zip(primals, tangents, strict=True)
                ]
            moved, _ = _several(function.jvp(node, *tangents))
            if len(moved) != len(results):
                raise RuntimeError(
                    f"{function.__name__}.jvp returned an incorrect number of tangents (expected {len(results)}, got {len(moved)})"
                )
    made = []
    for part, tangent in zip(results, moved, strict=True):
        if not isinstance(part, Tensor):
            made.append(part)
            continue
        wrapped = layer.dual(part, tangent) if tangent is not None else layer.lift(part)
        made.append(wrapped)
    return tuple(made) if several else made[0]


def _batched(function: type[Function], arguments: tuple[Any, ...], layer: VmapLayer) -> Any:
    from ..function import Function

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
    _require_setup_context(function)
    generated, shape = _generated(function, layer.size, layer.randomness, dims)
    with outside():
        output = generated.apply(*values)
    results, _ = _several(output)
    made = [layer.wrap(part, 0) if isinstance(part, Tensor) else part for part in results]
    return tuple(made) if shape["several"] else made[0]


def _generated(
    function: type[Function], size: int, randomness: str, dims: Sequence[int | None]
) -> tuple[type[Function], dict[str, Any]]:
    """Return a function on batches whose methods run those of `function` within vmap."""
    from ..function import Function

    shape: dict[str, Any] = {"several": False}

    def wrapped(layer: VmapLayer, value: Any, dim: int | None) -> Any:
        return layer.wrap(value, dim) if isinstance(value, Tensor) and dim is not None else value

    def in_front(layer: VmapLayer, part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        with outside():
            return layer.front(part)

    class Generated(Function):
        @staticmethod
        def forward(*inputs: Any) -> Any:
            layer = VmapLayer(size, randomness)
            with entered(layer):
                output = function.forward(
                    *(wrapped(layer, value, dim) for value, dim in zip(inputs, dims, strict=True))
                )
                results, shape["several"] = _several(output)
                return tuple(in_front(layer, part) for part in results)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            layer = VmapLayer(size, randomness)
            inner = ctx.inner = function._backward_cls()
            inner.needs_input_grad = ctx.needs_input_grad
            with entered(layer):
                own = tuple(wrapped(layer, value, dim) for value, dim in zip(inputs, dims, strict=True))
                results = [wrapped(layer, part, 0) for part in output]
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
            layer = VmapLayer(size, randomness)
            with entered(layer):
                ctx.inner.restore(
                    [wrapped(layer, part, dim) for part, dim in zip(ctx.saved_tensors, ctx.dims_of_saved, strict=True)]
                )
                made = function.backward(ctx.inner, *(wrapped(layer, part, 0) for part in gradients))
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
            layer = VmapLayer(size, randomness)
            with entered(layer):
                ctx.inner.restore(
                    [wrapped(layer, part, dim) for part, dim in zip(ctx.saved_tensors, ctx.dims_of_saved, strict=True)]
                )
                moved, _ = _several(
                    function.jvp(
                        ctx.inner, *(wrapped(layer, part, dim) for part, dim in zip(tangents, dims, strict=True))
                    )
                )
                return tuple(in_front(layer, part) for part in moved)

    Generated.__name__ = Generated.__qualname__ = f"Vmapped{function.__name__}"
    return Generated, shape
