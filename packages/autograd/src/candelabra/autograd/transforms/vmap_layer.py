"""The functorch layer of vmap: tensors with a hidden batch dimension.

A tensor of the layer stands for a tensor with one more dimension, the batch. Its shape is that of
one entry. It aliases the memory of the first entry, so that shape, strides and offset are correct
for all readers. Reading its values is an error.

Each operator runs through its batch rule (:mod:`.batch_rules`), through its decomposition, or in a
loop over the entries.

Tensors that the function creates, such as ``zeros(3)``, belong to the layer but have no batch. When
batched values are written to such a tensor, it and all its views become batched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import candelabra
from candelabra import _C, Tensor, ops

from ..functorch_layers import (
    DATA_DEPENDENT,
    RANDOM,
    VIEW,
    FunctorchLayer,
    Wrapper,
    call_composite,
    changes_first,
    map_results,
    outside,
    tensors_in,
)
from .batch_rules import rule_of
from .batch_shapes import Batched
from .custom import apply_batched

if TYPE_CHECKING:
    from ..function import Function


class BatchedValueError(RuntimeError):
    """Raised if code reads a batched value, or if a shape depends on one."""


class BatchedTensor(Wrapper):
    """A tensor of a :class:`VmapLayer`.

    ``_bdim`` is the batch dimension of ``_value``, or None.
    """

    _bdim: int | None

    def _readable(self, what: str) -> Tensor:
        layer = self._layer
        assert isinstance(layer, VmapLayer)
        layer.refresh(self)
        if self._bdim is None or not layer.alive:
            return self._value
        _refuse_value(what)

    def data_ptr(self) -> int:
        return self._readable("data_ptr").data_ptr()

    def __repr__(self) -> str:
        return f"BatchedTensor(level={self._layer.number}, bdim={self._bdim}, value={self._value!r})"


def _refuse_value(what: str) -> NoReturn:
    if what == "item":
        raise BatchedValueError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
            "rewrite what you're doing with other operations."
        )
    if what == "bool":
        raise BatchedValueError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that: what is done "
            "would differ between the entries of the batch. candelabra.where() chooses between values."
        )
    raise BatchedValueError(
        f"Cannot access data pointer of Tensor that doesn't have storage: {what}() of a tensor inside of vmap"
    )


class VmapLayer(FunctorchLayer):
    """The functorch layer of vmap."""

    transformation = "vmap"

    def __init__(self, size: int, randomness: str) -> None:
        self.size = size
        self.randomness = randomness

    def wrap(self, value: Tensor, bdim: int | None, base: Any = None) -> BatchedTensor:
        """Return a tensor of this layer."""
        made: BatchedTensor = _C.make_wrapper(BatchedTensor, value, -1 if bdim is None else bdim, base)
        made._layer, made._value, made._bdim = self, value, bdim
        return made

    def detached(self, wrapper: Any) -> Tensor:
        self.refresh(wrapper)
        return self.wrap(wrapper._value, wrapper._bdim)

    def again(self) -> VmapLayer:
        """Return another layer for a batch of the same size."""
        return VmapLayer(self.size, self.randomness)

    # ---- helpers for batch rules

    def refresh(self, tensor: Any) -> None:
        """Update a view whose base became batched after the view was created."""
        root = tensor._base
        if tensor._bdim is None and root is not None and self.owns(root) and root._bdim is not None:
            with outside():
                tensor._value = _same_place(root, tensor)
            tensor._bdim = 0

    def is_batched(self, value: Any) -> bool:
        """Return whether a value is a batched tensor of this layer."""
        if not self.owns(value):
            return False
        self.refresh(value)
        return value._bdim is not None

    def value_of(self, value: Any) -> tuple[Any, int | None]:
        """Return the unwrapped value and its batch dimension (None without a batch)."""
        if self.owns(value):
            self.refresh(value)
            return value._value, value._bdim
        return self.unwrap(value), None

    def front(self, value: Any) -> Tensor:
        """Return the unwrapped tensor with the batch first, expanded if it has none."""
        tensor, bdim = self.value_of(value)
        if bdim is None:
            return tensor.unsqueeze(0).expand((self.size, *tensor.shape))
        return tensor if bdim == 0 else tensor.movedim(bdim, 0)

    def front_or_plain(self, value: Any) -> tuple[Any, bool]:
        """Return the unwrapped tensor, with any batch first, and whether it has a batch."""
        tensor, bdim = self.value_of(value)
        if bdim is None:
            return tensor, False
        return (tensor if bdim == 0 else tensor.movedim(bdim, 0)), True

    def give_batch(self, tensor: Any) -> None:
        """Make an unbatched tensor batched by copying its value for each entry.

        The base becomes batched as well, and thereby all other views.
        """
        self.refresh(tensor)
        if tensor._bdim is not None:
            return
        root = tensor._base if tensor._base is not None and self.owns(tensor._base) else tensor
        with outside():
            value = root._value
            dense = 1 + sum(
                (size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True) if size
            )
            if (
                any(stride == 0 and size > 1 for size, stride in zip(value.shape, value.stride(), strict=True))
                or not value.numel()
            ):
                made = value.unsqueeze(0).expand((self.size, *value.shape)).contiguous()
            else:
                made = ops.empty_strided(
                    (self.size, *value.shape), (dense, *value.stride()), dtype=value.dtype, device=value.device
                ).copy_(value)  # fmt: skip
        root._value, root._bdim = made, 0
        self.refresh(tensor)

    # ---- dispatch

    def process(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        if not any(self.is_batched(tensor) for tensor in tensors_in(arguments)):
            if self.is_batched(out):
                raise RuntimeError(f"vmap: {operator.name}(out=...) into a tensor with a batch is not supported")
            if operator.tags & RANDOM:
                return self._random(operator, arguments, out, generator)
            inner = tuple(map(self.unwrap, arguments))
            result = self.below(operator, inner, self.unwrap(out), generator)
            return out if out is not None else self._made_inside(operator, arguments, inner, result)
        if out is not None:
            raise RuntimeError(f"vmap: {operator.name}(): out= is not supported for tensors with a batch")
        if operator.tags & RANDOM:
            return self._random(operator, arguments, out, generator)
        if operator.tags & DATA_DEPENDENT and (operator.name != "masked_select" or self.is_batched(arguments[1])):
            raise BatchedValueError(
                f"vmap: It looks like you're calling {operator.name}, the size of whose result depends on values. We do not support batching "
                "operators that can support dynamic shape. Attempting to batch over indexing with a boolean mask."
            )
        if changes_first(operator):
            self._prepare_target(operator, arguments)
        return self._batched(operator, arguments, generator)

    def apply(self, function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return apply_batched(function, arguments, self)

    def _batched(self, operator: Any, arguments: tuple[Any, ...], generator: Any) -> Any:
        rule = rule_of(operator)
        if rule is not None and not self._has_batched_number(operator, arguments):
            with outside():
                result = rule(self, operator, arguments)
            if result is not NotImplemented:
                return self._wrapped(operator, arguments, result)
        base = operator.functional or operator
        if base.composite is not None:
            try:
                made = call_composite(base, arguments, generator)
            except BatchedValueError:
                pass
            else:
                return made if base is operator else arguments[0].copy_(made)
        with outside():
            result = self._one_by_one(operator, arguments, generator)
        return self._wrapped(operator, arguments, result)

    def _has_batched_number(self, operator: Any, arguments: tuple[Any, ...]) -> bool:
        """Return whether a number argument is a batched tensor, with one number per entry."""
        return any(
            isinstance(argument, Tensor) and not kind.startswith("Tensor") and self.is_batched(argument)
            for kind, argument in zip(operator.parameter_types, arguments, strict=True)
        )

    def _prepare_target(self, operator: Any, arguments: tuple[Any, ...]) -> None:
        """Make the target of an in-place operation batched."""
        target = arguments[0]
        if self.is_batched(target):
            return
        if not self.owns(target):
            raise RuntimeError(
                f"vmap: {operator.name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
                "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please "
                f"try to use out-of-place operators instead of {operator.name}."
            )
        self.give_batch(target)

    def _made_inside(self, operator: Any, arguments: tuple[Any, ...], inner: tuple[Any, ...], result: Any) -> Any:
        """Wrap an unbatched result, so that batched values may be written to it later."""
        given = {
            id(value): argument
            for value, argument in zip(inner, arguments, strict=True)
            if isinstance(argument, Tensor)
        }

        def wrapped(part: Any) -> Any:
            if not isinstance(part, Tensor):
                return part
            if id(part) in given:
                return given[id(part)]
            if operator.tags & VIEW:
                return self.wrap(part, None, arguments[0]) if self.owns(arguments[0]) else part
            return self.wrap(part, None)

        return map_results(result, wrapped)

    def _wrapped(self, operator: Any, arguments: tuple[Any, ...], result: Any) -> Any:
        if changes_first(operator):
            target = arguments[0]
            target._bump_version()
            return target

        def wrapped(part: Any) -> Any:
            if isinstance(part, Batched):
                return self.wrap(part.value, part.bdim, base)
            return self.wrap(part, 0, base) if isinstance(part, Tensor) else part

        if isinstance(result, list):
            kind = operator.result_type
            result = tuple(result) if kind is None else kind(result)
        base = arguments[0] if operator.tags & VIEW and self.owns(arguments[0]) else None
        return wrapped(result) if isinstance(result, Batched) else map_results(result, wrapped)

    # ---- operators without a batch rule

    def _one_by_one(self, operator: Any, arguments: tuple[Any, ...], generator: Any) -> Any:
        """Loop over the entries of the batch."""
        if self.size == 0:
            raise RuntimeError(
                f"vmap: {operator.name} has no rule for batches, and there is no entry of an empty one to see what it gives"
            )

        def entry(value: Any, number: int) -> Any:
            if isinstance(value, Tensor):
                tensor, bdim = self.value_of(value)
                return tensor if bdim is None else tensor.select(bdim, number)
            if isinstance(value, (tuple, list)) and any(isinstance(part, Tensor) for part in value):
                return [entry(part, number) for part in value]
            return value

        rows = [
            operator.again(tuple(entry(argument, number) for argument in arguments), None, generator)
            for number in range(self.size)
        ]
        if not isinstance(rows[0], tuple):
            return candelabra.stack(rows) if isinstance(rows[0], Tensor) else rows[0]
        columns = [candelabra.stack(column) for column in zip(*rows, strict=True)]
        kind = type(rows[0])
        return tuple(columns) if kind is tuple else kind(columns)

    def _random(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any) -> Any:
        """Draw the same or different random numbers for the entries, as `randomness` says."""
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
                "vmap or perform the randomness operation out of vmap"
            )
        changing = changes_first(operator)
        if operator.composite is not None:
            return call_composite(operator, arguments, generator)
        batched = any(self.is_batched(tensor) for tensor in tensors_in(arguments))
        if self.randomness == "same":
            if changing and batched:
                target = arguments[0]
                with outside():
                    value = candelabra.empty(target.shape, dtype=target.dtype, device=target.device)
                    operator.again((value, *arguments[1:]), None, generator)
                    tensor, bdim = self.value_of(target)
                    tensor.copy_(value.unsqueeze(bdim or 0))
                target._bump_version()
                return target
            if batched:
                if operator.name == "bernoulli":
                    # Draw once for all entries, and compare with the probabilities of each.
                    (probabilities,) = arguments
                    with outside():
                        drawn = candelabra.rand(probabilities.shape, dtype=probabilities.dtype, generator=generator)
                    return (drawn < probabilities).to(probabilities.dtype)
                raise RuntimeError(
                    f"Vmap does not currently support same randomness with a batched tensor input to {operator.name}"
                )
            inner = tuple(map(self.unwrap, arguments))
            result = self.below(operator, inner, self.unwrap(out), generator)
            return self._made_inside(operator, arguments, inner, result)
        if changing:
            target = arguments[0]
            if not self.owns(target):
                raise RuntimeError(
                    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness: draw into "
                    "a tensor that the function makes."
                )
            self.give_batch(target)
            tensor, _ = self.value_of(target)
            self.below(operator, (tensor, *arguments[1:]), None, generator)
            target._bump_version()
            return target
        if operator.name == "bernoulli":
            with outside():
                result = operator.again((self.front(arguments[0]),), None, generator)
            return self.wrap(result, 0)
        inner = tuple(map(self.unwrap, arguments))
        with outside():
            rows = [operator.again(inner, None, generator) for _ in range(self.size)]
            stacked = candelabra.stack(rows) if rows else None
        if stacked is None:
            raise RuntimeError(f"vmap: {operator.name} over an empty batch")
        return self.wrap(stacked, 0)


def _same_place(root: Any, tensor: Any) -> Tensor:
    """Return the view of the root's batched value that corresponds to `tensor`."""
    whole = root._value
    if root.is_complex() and not tensor.is_complex():
        whole = candelabra.view_as_real(whole)
        start = 2 * root.storage_offset()
    elif tensor.is_complex() and not root.is_complex():
        whole = candelabra.view_as_complex(whole)
        start = root.storage_offset() // 2
    else:
        start = root.storage_offset()
    offset = tensor.storage_offset() - start + whole.storage_offset()
    return whole.as_strided((whole.shape[0], *tensor.shape), (whole.stride(0), *tensor.stride()), offset)


def out_of(layer: VmapLayer, value: Any, out_dim: int) -> Tensor:
    """Return a result of the function, with its batch moved to `out_dim`."""
    tensor, bdim = layer.value_of(value)
    if bdim is None:
        made = tensor.unsqueeze(0).expand((layer.size, *tensor.shape))
        return made if out_dim == 0 else made.movedim(0, out_dim)
    return tensor if bdim == out_dim % tensor.ndim else tensor.movedim(bdim, out_dim)
