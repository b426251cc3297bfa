"""Batch rules of neural network layers: fold the batch into a dimension of the layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from .batch_shapes import joined_dims

if TYPE_CHECKING:
    from .vmap_layer import VmapLayer


def _fold(value: Tensor, dim: int) -> Tensor:
    """Fold the batch (dimension 0) into dimension `dim`, counted without the batch."""
    moved = value if dim == 0 else value.movedim(0, dim)
    return joined_dims(moved, dim)


def _unfold_batch(layer: VmapLayer, value: Tensor, dim: int) -> Tensor:
    """Split the batch out of dimension `dim` again, and move it to the front."""
    made = value.reshape(
        (*value.shape[:dim], layer.size, value.shape[dim] // max(layer.size, 1), *value.shape[dim + 1 :])
    )
    return made if dim == 0 else made.movedim(dim, 0)


def convolution(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    data, weight, bias, *options, groups = arguments
    added = layer.front(bias) if layer.is_batched(bias) else None
    plain_bias = layer.unwrap(bias) if bias is not None and added is None else None
    if not layer.is_batched(weight):
        if layer.is_batched(data):
            made = operator.again(
                (_fold(layer.front(data), 0), layer.unwrap(weight), plain_bias, *options, groups), None, None
            )
            made = _unfold_batch(layer, made, 0)
        else:
            made = operator.again((layer.unwrap(data), layer.unwrap(weight), None, *options, groups), None, None)
            made = made.unsqueeze(0).expand((layer.size, *made.shape))
    else:
        # Each batch entry has its own weight, so the batch becomes groups of channels.
        folded = _fold(layer.front(data), 1)
        made = operator.again((folded, _fold(layer.front(weight), 0), None, *options, groups * layer.size), None, None)
        made = _unfold_batch(layer, made, 1)
        if plain_bias is not None:
            made = made + plain_bias.reshape((1, 1, -1, *(1,) * (made.ndim - 3)))
    if added is not None:
        made = made + added.reshape((layer.size, 1, -1, *(1,) * (made.ndim - 3)))
    return made


def convolution_backward_input(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, weight, size, *options, groups = arguments
    if not layer.is_batched(weight):
        folded = _fold(layer.front(grad), 0)
        made = operator.again(
            (folded, layer.unwrap(weight), (folded.shape[0], *size[1:]), *options, groups), None, None
        )
        return _unfold_batch(layer, made, 0)
    folded_size = (size[0], size[1] * layer.size, *size[2:])
    made = operator.again(
        (_fold(layer.front(grad), 1), _fold(layer.front(weight), 0), folded_size, *options, groups * layer.size),
        None,
        None,
    )
    return _unfold_batch(layer, made, 1)


def convolution_backward_weight(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, data, size, *options, groups = arguments
    folded_size = (size[0] * layer.size, *size[1:])
    made = operator.again(
        (_fold(layer.front(grad), 1), _fold(layer.front(data), 1), folded_size, *options, groups * layer.size),
        None,
        None,
    )
    return _unfold_batch(layer, made, 0)


def folded(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply an operator that treats the entries of its first dimension independently."""
    made: list[Any] = []
    for name, argument in zip(operator.parameters, arguments, strict=True):
        if isinstance(argument, Tensor):
            made.append(_fold(layer.front(argument), 0))
        elif name == "input_size" and len(argument) == arguments[0].ndim:
            made.append((argument[0] * layer.size, *argument[1:]))
        else:
            made.append(argument)
    result = operator.again(tuple(made), None, None)
    if isinstance(result, Tensor):
        return _unfold_batch(layer, result, 0)
    return [_unfold_batch(layer, part, 0) for part in result]


def attention(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Fold the batch as in :func:`folded`; the mask may have fewer dimensions than the others."""
    place = 3 if operator.name == "_scaled_dot_product_attention" else 4
    mask, query = arguments[place], arguments[place - 3]
    if mask is not None:
        value = layer.front(mask)
        value = value.reshape((layer.size, *(1,) * (4 - mask.ndim), *mask.shape))
        value = value.expand((layer.size, query.shape[0], *value.shape[2:]))
        arguments = (*arguments[:place], layer.wrap(value, 0), *arguments[place + 1 :])
    return folded(layer, operator, arguments)


def nll_loss_forward(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    scores, target, weight, reduction, ignored = arguments
    if layer.is_batched(weight) or scores.ndim == 0:
        return NotImplemented
    plain = layer.unwrap(weight) if weight is not None else None
    values, classes = layer.front(scores), layer.front(target)
    single = scores.ndim == 1
    if not single:
        values, classes = _fold(values, 0), _fold(classes, 0)
    losses, _ = operator.again((values, classes, plain, 0, ignored), None, None)
    if not single:
        losses, classes = _unfold_batch(layer, losses, 0), _unfold_batch(layer, classes, 0)
    counted = classes != ignored
    if plain is None:
        totals = counted.to(losses.dtype)
    else:
        totals = candelabra.where(counted, plain.take(candelabra.where(counted, classes, 0)), 0)
    total = totals.reshape((layer.size, -1)).sum(1)
    if reduction == 0:
        return [losses, total]
    summed = losses.reshape((layer.size, -1)).sum(1)
    return [summed / total if reduction == 1 else summed, total]


def nll_loss_backward(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, scores, target, weight, reduction, ignored, total = arguments
    if layer.is_batched(weight):
        return NotImplemented
    plain = layer.unwrap(weight) if weight is not None else None
    values, classes = layer.front(scores), layer.front(target)
    gradient = layer.front(grad)
    if reduction != 0:
        if reduction == 1:
            gradient = gradient / layer.front(total)
        gradient = gradient.reshape((layer.size, *(1,) * target.ndim)).expand(classes.shape)
    empty = candelabra.zeros((), dtype=values.dtype, device=values.device)
    if scores.ndim == 1:
        return operator.again((gradient, values, classes, plain, 0, ignored, empty), None, None)
    made = operator.again(
        (_fold(gradient, 0), _fold(values, 0), _fold(classes, 0), plain, 0, ignored, empty), None, None
    )
    return _unfold_batch(layer, made, 0)


def layer_norm(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    data, shape, weight, bias, eps = arguments
    if layer.is_batched(weight) or layer.is_batched(bias):
        return NotImplemented
    plain = [layer.unwrap(entry) if entry is not None else None for entry in (weight, bias)]
    return operator.again((layer.front(data), shape, *plain, eps), None, None)
