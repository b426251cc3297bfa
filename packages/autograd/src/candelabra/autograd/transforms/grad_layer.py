"""The functorch layer of reverse-mode differentiation: a tape of its own.

Tensors of the layer have their own history, independent of the history of the tensors they stand
for. A call runs one layer further out first, where outer tapes may record it. Then this layer
records it. Outer layers see the grad mode from when this layer was entered. The layer's own
backward pass, and ``no_grad`` inside the function, do not affect them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from ..function import listed, record_application, require_setup_context
from ..functorch_layers import (
    NONDIFFERENTIABLE,
    VIEW,
    FunctorchLayer,
    Wrapper,
    _state,
    call_composite,
    changes_first,
    map_results,
    outside,
    tensors_in,
)

if TYPE_CHECKING:
    from ..function import Function


class TapedTensor(Wrapper):
    """A tensor of a :class:`GradLayer`."""


class GradLayer(FunctorchLayer):
    """The functorch layer of reverse-mode differentiation."""

    transformation = "grad, vjp or jacrev"

    def __init__(self) -> None:
        self.outer_mode = candelabra.is_grad_enabled()

    def wrap(self, value: Tensor, base: Any = None) -> TapedTensor:
        """Return a tensor of this layer that does not require grad yet."""
        made: TapedTensor = _C.make_wrapper(TapedTensor, value, -1, base)
        made._layer, made._value = self, value
        return made

    def variable(self, value: Tensor) -> TapedTensor:
        """Return a tensor of this layer to differentiate with respect to."""
        made = self.wrap(value)
        made.requires_grad = True
        return made

    def detached(self, wrapper: Any) -> Tensor:
        return self.wrap(wrapper._value)

    def lift(self, value: Any) -> Any:
        """Wrap tensors of other layers into tensors of this layer."""
        if isinstance(value, Tensor):
            return value if self.owns(value) else self.wrap(self.unwrap(value))
        if isinstance(value, (tuple, list)) and any(isinstance(entry, Tensor) for entry in value):
            return tuple(map(self.lift, value))
        return value

    def below(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any) -> Any:
        before = _C.set_grad_enabled(self.outer_mode)
        _state.depth -= 1
        try:
            return operator.again(arguments, out, generator)
        finally:
            _state.depth += 1
            _C.set_grad_enabled(before)

    def process(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        recording = (
            record
            and candelabra.is_grad_enabled()
            and not operator.tags & NONDIFFERENTIABLE
            and any(self.owns(tensor) and tensor.requires_grad for tensor in tensors_in(arguments))
        )
        if changes_first(operator) and not self.owns(arguments[0]) and any(map(self.owns, tensors_in(arguments[1:]))):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
                f"({operator.name}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
                "transformed to explicitly accept the mutated Tensor(s) as inputs."
            )
        if not recording:
            return self._wrapped(operator, arguments, out, self._done_below(operator, arguments, out, generator))
        own = tuple(map(self.lift, arguments))
        if operator.inplace_autograd_function is not None:
            return operator.inplace_autograd_function(operator, *own)
        if out is not None:
            raise RuntimeError(
                f"{operator.name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                "requires grad."
            )
        if operator.autograd_function is None:
            if operator.functional is not None and operator.functional.composite is not None:
                return own[0].copy_(call_composite(operator.functional, own, generator))
            if operator.composite is not None:
                return call_composite(operator, own, generator)
            return self._wrapped(operator, arguments, out, self._done_below(operator, arguments, out, generator))
        result = self._wrapped(operator, own, out, self._done_below(operator, arguments, out, generator))
        if operator.composite is not None and any(result is argument for argument in own):
            return call_composite(operator, own, generator)
        return (
            operator.autograd_function(result, *own)
            if generator is None
            else operator.autograd_function(result, *own, generator=generator)
        )

    def apply(self, function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        require_setup_context(function)
        inner = tuple(map(self.unwrap, arguments))
        before = _C.set_grad_enabled(self.outer_mode)
        try:
            with outside():
                output = function.apply(*inner, **keywords)
        finally:
            _C.set_grad_enabled(before)
        results, several = listed(output)
        given = {
            id(value): argument
            for value, argument in zip(inner, arguments, strict=True)
            if isinstance(argument, Tensor)
        }
        results = [
            given[id(part)] if id(part) in given else self.wrap(part) if isinstance(part, Tensor) else part
            for part in results
        ]
        made = record_application(function, tuple(map(self.lift, arguments)), results, several)
        return tuple(made) if several else made[0]

    def _done_below(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any) -> Any:
        return self.below(operator, tuple(map(self.unwrap, arguments)), self.unwrap(out), generator)

    def _wrapped(self, operator: Any, arguments: tuple[Any, ...], out: Any, result: Any) -> Any:
        """Wrap results into tensors of this layer; an argument that is returned stays itself."""
        if out is not None:
            return out
        given = {id(self.unwrap(argument)): argument for argument in arguments if isinstance(argument, Tensor)}

        def wrapped(part: Any) -> Any:
            if not isinstance(part, Tensor):
                return part
            same = given.get(id(part))
            if same is not None:
                return same
            if operator.tags & VIEW and not operator.tags & NONDIFFERENTIABLE:
                viewed = arguments[0]
                return self.wrap(part, viewed) if self.owns(viewed) else part
            return self.wrap(part)

        return map_results(result, wrapped)
