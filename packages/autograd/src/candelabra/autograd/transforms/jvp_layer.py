"""The functorch layer of forward-mode differentiation: tensors with tangents.

A tensor of the layer holds a primal and a tangent, both tensors of the outer layers. An operator
runs on the primals one layer further out. The tangents of its results are computed there as well
(see :mod:`.dual_rules`), so that outer tapes record them and outer layers see them.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from ..function import Function, listed, run_forward
from ..functorch_layers import (
    NONDIFFERENTIABLE,
    VIEW,
    FunctorchLayer,
    Wrapper,
    call_composite,
    changes_first,
    differentiable,
    entered,
    map_results,
    outside,
    tensors_in,
)
from ..node import SingleNode, next_sequence
from . import dual_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..function import FunctionNode


class _Mode(threading.local):
    enabled = True


_mode = _Mode()


def is_forward_enabled() -> bool:
    """Return whether tangents are computed on this thread."""
    return _mode.enabled


def set_forward_enabled(mode: bool) -> None:
    """Turn computation of tangents on this thread on or off."""
    _mode.enabled = mode


@contextlib.contextmanager
def forward_enabled(mode: bool) -> Iterator[None]:
    """Turn computation of tangents on or off within the block."""
    before, _mode.enabled = _mode.enabled, mode
    try:
        yield
    finally:
        _mode.enabled = before


class DualTensor(Wrapper):
    """A tensor of a :class:`JvpLayer`."""

    _tangent: Tensor | None

    @property
    def _is_differentiated(self) -> bool:
        return self._tangent is not None or super()._is_differentiated


class DualNode(SingleNode):
    """The history of a dual tensor whose primal requires grad; passes gradients through."""

    __slots__ = ()

    def backward(self, grad: Tensor) -> Tensor:
        return grad


def look_like(whole: Tensor, root: Tensor, view: Tensor) -> Tensor:
    """Return the view of `whole` that corresponds to `view`; `whole` is laid out like `root`."""
    if root.is_complex() != view.is_complex():
        whole = candelabra.view_as_real(whole) if root.is_complex() else candelabra.view_as_complex(whole)
        scale = (2, 1) if root.is_complex() else (1, 2)
        offset = view.storage_offset() - root.storage_offset() * scale[0] // scale[1]
    else:
        offset = view.storage_offset() - root.storage_offset()
    return whole.as_strided(view.shape, view.stride(), whole.storage_offset() + offset)


class JvpLayer(FunctorchLayer):
    """The functorch layer of forward-mode differentiation."""

    transformation = "jvp or jacfwd"

    def __init__(self, lifting: bool = True) -> None:
        #: Whether tensors that the function creates become tensors of this layer, so that tensors
        #: with tangents can be written to them. If False, they stay plain, and their tangents are
        #: stored in `adopted` by id.
        self.lifting = lifting
        self.adopted: dict[int, tuple[Any, Tensor]] = {}

    def wrap(self, value: Tensor, tangent: Tensor | None = None, base: Any = None) -> DualTensor:
        """Return a tensor of this layer."""
        made: DualTensor = _C.make_wrapper(DualTensor, value, -1, base)
        made._layer, made._value, made._tangent = self, value, tangent
        return made

    def dual(self, primal: Tensor, tangent: Tensor) -> DualTensor:
        """Return a tensor with a tangent, connected to the primal's history."""
        made = self.wrap(primal, tangent)
        if primal.requires_grad:
            self._connect(made, primal)
        return made

    def _connect(self, made: DualTensor, primal: Tensor) -> None:
        node = DualNode()
        node._sequence, node._hooks, node._edge = next_sequence(), None, primal._edge
        made._set_history(node)

    def detached(self, wrapper: Any) -> Tensor:
        return self.wrap(wrapper._value, wrapper._tangent)

    def tangent_of(self, value: Any) -> Any:
        """Return the tangent of an argument or None; for a list, a list of tangents."""
        if isinstance(value, (tuple, list)):
            parts = [self.tangent_of(entry) for entry in value]
            return parts if any(part is not None for part in parts) else None
        if not self.owns(value):
            return self._adopted_tangent(value) if self.adopted and differentiable(value) else None
        root = value._base
        if (
            root is not None
            and self.owns(root)
            and root._tangent is not None
            and (value._tangent is None or getattr(root, "_owns_tangent", False))
            and differentiable(value)
        ):
            # The base got its tangent after the view was created, by a write to it or to another
            # view.
            with outside():
                value._tangent = look_like(root._tangent, root._value, value._value)
        return value._tangent

    def _adopted_tangent(self, value: Tensor) -> Tensor | None:
        root = value if value._base is None else value._base
        noted = self.adopted.get(id(root))
        if noted is None or noted[0]() is not root:
            return None
        with outside():
            return noted[1] if root is value else look_like(noted[1], root, value)

    def lift(self, value: Any) -> Any:
        """Wrap tensors of other layers into tensors of this layer."""
        if isinstance(value, Tensor):
            if self.owns(value):
                return value
            value = self.unwrap(value)
            made = self.wrap(value)
            if value.requires_grad:
                self._connect(made, value)
            return made
        if isinstance(value, (tuple, list)) and any(isinstance(entry, Tensor) for entry in value):
            return tuple(map(self.lift, value))
        return value

    def process(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        # Tensors of this layer have a history only if make_dual() set one. Their gradients are dual
        # tensors.
        recording = (
            record
            and candelabra.is_grad_enabled()
            and not operator.tags & NONDIFFERENTIABLE
            and any(self.owns(tensor) and tensor.requires_grad for tensor in tensors_in(arguments))
        )
        if recording:
            own = tuple(map(self.lift, arguments))
            if operator.inplace_autograd_function is not None:
                return operator.inplace_autograd_function(operator, *own)
            if operator.autograd_function is None and operator.composite is not None:
                return call_composite(operator, own, generator)
            result = self._done(operator, own, out, generator)
            if operator.autograd_function is None:
                return result
            return (
                operator.autograd_function(result, *own)
                if generator is None
                else operator.autograd_function(result, *own, generator=generator)
            )
        return self._done(operator, arguments, out, generator)

    def apply(self, function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        primals = tuple(map(self.unwrap, arguments))
        tangents = [self.tangent_of(argument) if isinstance(argument, Tensor) else None for argument in arguments]
        with outside():
            output, node = run_forward(function, primals, keywords)
            results, several = listed(output)
            moved: list[Any] = [None] * len(results)
            if any(tangent is not None for tangent in tangents):
                moved = _tangents_of(function, node, primals, tangents, len(results))
        made = []
        for part, tangent in zip(results, moved, strict=True):
            if not isinstance(part, Tensor):
                made.append(part)
            else:
                made.append(self.dual(part, tangent) if tangent is not None else self.lift(part))
        return tuple(made) if several else made[0]

    def _done(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any) -> Any:
        tangents: list[Any] = (
            [self.tangent_of(argument) for argument in arguments] if _mode.enabled else [None] * len(arguments)
        )
        if operator.name == "native_batch_norm" and any(tangent is not None for tangent in tangents[3:5]):
            # Running statistics are not differentiable, so their tangents are dropped.
            arguments = (
                *arguments[:3],
                *(self._without_tangent(argument) for argument in arguments[3:5]),
                *arguments[5:],
            )
            tangents[3:5] = [None, None]
        if changes_first(operator):
            return self._done_in_place(operator, arguments, tangents, generator)
        primals = tuple(map(self.unwrap, arguments))
        if all(tangent is None for tangent in tangents):
            result = self.below(operator, primals, self.unwrap(out), generator)
            return out if out is not None else self._wrapped(operator, arguments, result, None)
        if out is not None:
            raise RuntimeError(f"{operator.name}(): out= does not support forward-mode differentiation")
        if dual_rules.goes_by_decomposition(operator):
            return call_composite(operator, arguments, generator)
        with outside():
            result, tangent = dual_rules.evaluate(operator, primals, tangents, generator)
        return self._wrapped(operator, arguments, result, tangent)

    def _wrapped(self, operator: Any, arguments: tuple[Any, ...], result: Any, tangent: Any) -> Any:
        given = {id(self.unwrap(argument)): argument for argument in arguments if isinstance(argument, Tensor)}
        tangents = iter(tangent) if isinstance(tangent, (tuple, list)) else None

        plain = not self.lifting and not any(map(self.owns, tensors_in(arguments)))

        def wrapped(part: Any) -> Any:
            own = next(tangents) if tangents is not None else tangent
            if not isinstance(part, Tensor) or (plain and own is None):
                return part
            same = given.get(id(part))
            if same is not None:
                return same
            if own is not None and own.dtype is not part.dtype:
                with outside():
                    own = own.to(part.dtype)
            if operator.tags & VIEW and not operator.tags & NONDIFFERENTIABLE:
                viewed = arguments[0]
                return self.wrap(part, own, viewed) if self.owns(viewed) else part
            return self.wrap(part, own)

        return map_results(result, wrapped)

    def _without_tangent(self, value: Any) -> Any:
        return self.wrap(value._value) if self.owns(value) else value

    def _done_in_place(self, operator: Any, arguments: tuple[Any, ...], tangents: list[Any], generator: Any) -> Any:
        target = arguments[0]
        primals = tuple(map(self.unwrap, arguments))
        if all(tangent is None for tangent in tangents):
            self.below(operator, primals, None, generator)
            return target
        if self.lifting and not self.owns(target):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
                f"({operator.name}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
                "transformed to explicitly accept the mutated Tensor(s) as inputs."
            )
        with outside():
            if operator.functional is not None:
                # The old value, copied before the operator overwrites it.
                before = (
                    primals[0].clone(),
                    *(primals[0].clone() if one is primals[0] else one for one in primals[1:]),
                )
                if dual_rules.goes_by_decomposition(operator.functional):
                    inner = JvpLayer()
                    tangent = _tangent_by_decomposition(inner, operator.functional, before, tangents, generator)
                else:
                    _, tangent = dual_rules.evaluate(operator.functional, before, tangents, generator)
            else:
                tangent = dual_rules.written(operator, primals, tangents)
            operator.again(primals, None, generator)
        self.set_tangent(target, tangent)
        return target

    def set_tangent(self, target: Any, tangent: Tensor | None) -> None:
        """Write the tangent of a tensor changed in place; views share it with their base."""
        if not differentiable(target):
            return
        root = target._base if target._base is not None and self.owns(target._base) == self.owns(target) else target
        with outside():
            whole = self._own_tangent(root, tangent is not None)
            if whole is None:
                return
            value, place = self.unwrap(root), self.unwrap(target)
            if target is root:
                whole = candelabra.zeros_like(whole) if tangent is None else whole.copy_(tangent)
            else:
                part = look_like(whole, value, place)
                part = part.zero_() if tangent is None else part.copy_(tangent)
                if self.owns(target):
                    target._tangent = part
        if self.owns(root):
            root._tangent = whole
        else:
            self.adopted[id(root)] = (weakref.ref(root), whole)

    def _own_tangent(self, root: Any, wanted: bool) -> Tensor | None:
        """Return the tangent of a tensor in writable memory, laid out like the tensor if possible.

        Returns None if the tensor has no tangent and `wanted` is False.
        """
        value = self.unwrap(root)
        if self.owns(root):
            tangent, own = root._tangent, getattr(root, "_owns_tangent", False)
            root._owns_tangent = True
        else:
            noted = self.adopted.get(id(root))
            tangent, own = (noted[1], True) if noted is not None and noted[0]() is root else (None, False)
        if tangent is None and not wanted:
            return None
        if own and tangent is not None and tangent.stride() == value.stride():
            return tangent
        if _overlaps(value):
            return candelabra.zeros_like(value) if tangent is None else tangent.clone()
        made = candelabra.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        return made.zero_() if tangent is None else made.copy_(tangent)


def _tangents_of(
    function: type[Function], node: FunctionNode, primals: tuple[Any, ...], tangents: list[Any], count: int
) -> list[Any]:
    """Return the tangents of the `count` results of a custom function, by its ``jvp``."""
    if function.jvp is Function.jvp:
        function.jvp(node, *tangents)
    if node.materialize_grads:
        tangents = [
            candelabra.zeros_like(primal) if tangent is None and isinstance(primal, Tensor) else tangent
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
    moved, _ = listed(function.jvp(node, *tangents))
    if len(moved) != count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(moved)})"
        )
    return moved


def _tangent_by_decomposition(
    layer: JvpLayer, operator: Any, primals: tuple[Any, ...], tangents: list[Any], generator: Any
) -> Any:
    with entered(layer):
        own = tuple(
            layer.wrap(primal, tangent) if isinstance(primal, Tensor) and tangent is not None else primal
            for primal, tangent in zip(primals, tangents, strict=True)
        )
        return layer.tangent_of(call_composite(operator, own, generator))


def _overlaps(tensor: Tensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
