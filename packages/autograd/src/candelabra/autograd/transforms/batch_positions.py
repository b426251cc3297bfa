"""Batch rules of indexed reads and writes.

Where necessary, the entries are joined along one dimension and the indices of each entry are
offset.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from .batch_shapes import Batched, joined_dims, wrapped_dim

if TYPE_CHECKING:
    from .vmap_layer import VmapLayer


def scatter(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    ndim = arguments[0].ndim
    dim = wrapped_dim(arguments[1], ndim) + 1
    made = [
        (layer.front(argument).unsqueeze(-1) if argument.ndim == 0 and ndim <= 1 else layer.front(argument))
        if isinstance(argument, Tensor) else argument
        for argument in arguments
    ]  # fmt: skip
    made[1] = dim
    result = operator.again(tuple(made), None, None)
    if operator.name == "gather":
        return result.reshape((layer.size, *arguments[2].shape))
    return result.squeeze(-1) if ndim == 0 else result


def _offset_rows(layer: VmapLayer, index: Any, rows: int) -> Tensor:
    """Offset the indices of each entry to its own range of the joined rows."""
    value = layer.front(index)
    value = candelabra.where(value < 0, value + rows, value)
    starts = candelabra.arange(layer.size, device=value.device) * rows
    return value + starts.reshape((layer.size, *(1,) * (value.ndim - 1)))


def index_select(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, dim, index = arguments
    if tensor.ndim == 0:
        return NotImplemented
    dim = wrapped_dim(dim, tensor.ndim)
    if not layer.is_batched(index):
        return operator.again((layer.front(tensor), dim + 1, layer.unwrap(index)), None, None)
    if index.ndim == 0:
        return NotImplemented
    value = layer.front(tensor).movedim(dim + 1, 1)
    flat = value.reshape((value.shape[0] * value.shape[1], *value.shape[2:]))
    picked = operator.again((flat, 0, _offset_rows(layer, index, tensor.shape[dim]).reshape(-1)), None, None)
    return picked.reshape((layer.size, index.numel(), *value.shape[2:])).movedim(1, dim + 1)


def index_write(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, dim, index, *rest = arguments
    if (
        tensor.ndim == 0
        or layer.is_batched(index)
        or any(isinstance(entry, Tensor) and entry.ndim == 0 for entry in rest)
    ):
        return NotImplemented
    made = [layer.front(entry) if isinstance(entry, Tensor) else entry for entry in rest]
    return operator.again(
        (layer.front(tensor), wrapped_dim(dim, tensor.ndim) + 1, layer.unwrap(index), *made), None, None
    )


def _positions(layer: VmapLayer, indices: Any) -> tuple[list[Any], int, int, bool] | None:
    """Prepare the indices of index().

    Returns the indices with their batch in front, the number of index dimensions, the position of
    the first index, and whether the indices are adjacent. Returns None if a mask is batched,
    because its entries may select different counts.
    """
    given = [index for index in indices if index is not None]
    if any(index.dtype in (candelabra.bool, candelabra.uint8) for index in given):
        if any(layer.is_batched(index) for index in given):
            return None
        expanded: list[Any] = []
        for index in indices:
            if index is not None and index.dtype in (candelabra.bool, candelabra.uint8):
                expanded += list(layer.unwrap(index).nonzero().unbind(1))
            else:
                expanded.append(index)
        indices = expanded
    places = [at for at, index in enumerate(indices) if index is not None]
    ndim = max(indices[at].ndim for at in places)
    made: list[Any] = []
    for index in indices:
        if index is None:
            made.append(None)
            continue
        value, batched = layer.front_or_plain(index)
        made.append(
            value.reshape((value.shape[0], *(1,) * (ndim - index.ndim), *value.shape[1:])) if batched else value
        )
    adjacent = places == list(range(places[0], places[-1] + 1))
    return made, ndim, places[0], adjacent


def _batch_index(layer: VmapLayer, ndim: int, device: Any) -> Tensor:
    return candelabra.arange(layer.size, device=device).reshape((layer.size, *(1,) * ndim))


def index_rule(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, indices = arguments
    prepared = _positions(layer, indices)
    if prepared is None:
        raise RuntimeError(
            "vmap: It looks like you're attempting to index with a boolean mask. We do not support batching operators that can support "
            "dynamic shape. Attempting to batch over indexing with a boolean mask."
        )
    made, ndim, first, adjacent = prepared
    if not layer.is_batched(tensor):
        result = operator.again((layer.unwrap(tensor), made), None, None)
        # The result has the index dimensions at the first index, with the batch first among them.
        return Batched(result, first if adjacent else 0)
    value = layer.front(tensor)
    if not any(layer.is_batched(index) for index in indices if index is not None):
        result = operator.again((value, [None, *made]), None, None)
        return Batched(result, 0 if adjacent else ndim)
    result = operator.again((value, [_batch_index(layer, ndim, value.device), *made]), None, None)
    if not adjacent or first == 0:
        return result
    # With the batch index added, the indices are not adjacent, so their dimensions come first.
    return result.movedim(list(range(1, ndim + 1)), list(range(first + 1, first + 1 + ndim)))


def index_put(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, indices, values, accumulate = arguments
    prepared = _positions(layer, indices)
    if prepared is None:
        # Entries of a batched mask may select different counts. That works only for a single value.
        given = [index for index in indices if index is not None]
        if len(given) == 1 and values.numel() == 1 and indices[0] is not None and not accumulate:
            return _masked_write(layer, operator, tensor, given[0], values)
        return NotImplemented
    made, ndim, first, adjacent = prepared
    value = layer.front(tensor)
    made = [_batch_index(layer, ndim, value.device), *made]
    shape = candelabra.broadcast_shapes(*(tuple(index.shape) for index in made if index is not None))
    rest = [size for size, index in zip(value.shape[len(made) :], [None] * value.ndim, strict=False)]
    between = [value.shape[at] for at, index in enumerate(made) if index is None]
    trailing = [*between, *rest]
    source, batched = layer.front_or_plain(values)
    # The shape of one entry as the caller sees it: the index dimensions are at the first index if
    # the indices are adjacent, else in front.
    before = between[:first] if adjacent else []
    after = trailing[len(before) :]
    entry = (*before, *shape[1:], *after)
    if batched:
        source = source.reshape((source.shape[0], *(1,) * (len(entry) - values.ndim), *source.shape[1:]))
    source = source.expand((layer.size, *entry))
    if before:
        count = len(before)
        source = source.movedim(list(range(count + 1, count + 1 + ndim)), list(range(1, 1 + ndim)))
    return operator.again((value, made, source, accumulate), None, None)


def _masked_write(layer: VmapLayer, operator: Any, tensor: Any, mask: Any, values: Any) -> Any:
    value = layer.front(tensor)
    place = layer.front(mask).to(candelabra.bool)
    place = place.reshape((*place.shape, *(1,) * (tensor.ndim - mask.ndim)))
    source = layer.front(values).reshape((layer.size, *(1,) * tensor.ndim)).to(value.dtype)
    made = candelabra.where(place, source, value)
    return value.copy_(made) if operator.functional is not None else made


def masked_select(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply masked_select() with an unbatched mask."""
    tensor, mask = arguments
    plain = layer.unwrap(mask)
    shape = candelabra.broadcast_shapes(tuple(tensor.shape), tuple(plain.shape))
    value = layer.front(tensor)
    value = value.reshape((layer.size, *(1,) * (len(shape) - tensor.ndim), *tensor.shape)).expand((layer.size, *shape))
    places = plain.expand(shape).reshape(-1).nonzero().reshape(-1)
    return value.reshape((layer.size, math.prod(shape))).index_select(1, places)


def take_rule(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, index = arguments
    if not layer.is_batched(tensor):
        return operator.again((layer.unwrap(tensor), layer.front(index)), None, None)
    return operator.again((layer.front(tensor), _offset_rows(layer, index, tensor.numel())), None, None)


def embedding(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    weight, indices, padding = arguments
    if not layer.is_batched(weight):
        return operator.again((layer.unwrap(weight), layer.front(indices), padding), None, None)
    value = layer.front(weight)
    flat = joined_dims(value, 0)
    return operator.again((flat, _offset_rows(layer, indices, weight.shape[0]), -1), None, None)


def embedding_backward(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, indices, rows, padding = arguments
    gradient = layer.front(grad)
    if padding >= 0:
        gradient = gradient.masked_fill((layer.front(indices) == padding).unsqueeze(-1), 0)
    made = operator.again((gradient, _offset_rows(layer, indices, rows), rows * layer.size, -1), None, None)
    return made.reshape((layer.size, rows, *made.shape[1:]))
