"""Rules for batches: how an operator is done for all entries of a batch at once.

A rule is called as ``rule(level, operator, arguments)``, below the level, with the arguments of the call, tensors of the level among them.
It returns the results with the batch as their first dimension, or NotImplemented where it does not know what to do.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, ops

from ..recording import signature
from .batch_level import Batched

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..recording import Signature
    from .batch_level import BatchLevel

    Rule = Callable[[BatchLevel, Any, tuple[Any, ...]], Any]


@functools.cache
def _signature_of(schema: str) -> Signature:
    return signature(schema)


def cached_signature(operator: Any) -> Signature:
    """Give the signature of an operator."""
    return _signature_of(operator.schema)


def wrapped_dim(dim: int, ndim: int) -> int:
    """Count a dimension from the front.

    Raises
    ------
    IndexError
        If there is no such dimension.
    """
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def _int_dims(dim: Any) -> list[int]:
    return [int(entry) for entry in (dim if isinstance(dim, (tuple, list)) else (dim,))]


# ---- element by element


def _elementwise(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    ndim = max(tensor.ndim for tensor in tensors)
    dtypes = {tensor.dtype for tensor in tensors}
    common = None
    if (
        len(dtypes) > 1
        and operator.name != "copy_"
        and not (operator.functional or operator).name.startswith(("where", "masked_fill"))
    ):
        # A tensor without dimensions counts for less in promotion than one with; with its batch it would not.
        common = candelabra.result_type(tensors[0], tensors[1])
        for tensor in tensors[2:]:
            common = candelabra.promote_types(common, candelabra.result_type(tensor, tensor))
    made = []
    for argument in arguments:
        if not isinstance(argument, Tensor):
            made.append(argument)
            continue
        value, batched = level.front_or_plain(argument)
        if batched:
            missing = ndim - argument.ndim
            if missing:
                value = value.reshape((value.shape[0], *(1,) * missing, *value.shape[1:]))
        elif operator.functional is not None and argument is arguments[0]:
            return NotImplemented
        if common is not None and value.dtype is not common and not (operator.functional is not None and argument is arguments[0]):
            value = value.to(common)
        made.append(value)
    return operator.again(tuple(made), None, None)


def _masked_fill(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Do masked_fill(), which wants a value without dimensions, as where()."""
    tensor, mask, value = arguments
    if not level.is_batched(value):
        return _elementwise(level, operator, arguments)
    if value.ndim:
        raise RuntimeError(
            f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    ndim = max(tensor.ndim, mask.ndim)
    target, place = (
        part.reshape((level.size, *(1,) * (ndim - of.ndim), *of.shape))
        for part, of in ((level.front(tensor), tensor), (level.front(mask), mask))
    )
    made = candelabra.where(place, level.front(value).reshape((level.size, *(1,) * ndim)).to(tensor.dtype), target)
    return level.front(tensor).copy_(made) if operator.functional is not None else made


# ---- along dimensions


def _along(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Do an operator with arguments ``dim`` or ``dims``, all of whose tensors have the same dimensions, with them counted one further."""
    names = [parameter.name for parameter in cached_signature(operator).parameters]
    ndim = arguments[0].ndim
    made: list[Any] = []
    for name, argument in zip(names, arguments, strict=True):
        if isinstance(argument, Tensor):
            value = level.front(argument)
            made.append(value.unsqueeze(-1) if argument.ndim == 0 else value)
        elif name in ("dim", "dims"):
            if isinstance(argument, int):
                made.append(wrapped_dim(argument, ndim) + 1)
            elif argument is None or not argument:
                if name == "dims":
                    made.append([])
                elif operator.name in _ONE_DIM:
                    return _over_all(level, operator, arguments)
                else:
                    made.append(list(range(1, max(ndim, 1) + 1)))
            else:
                made.append([wrapped_dim(dim, ndim) + 1 for dim in _int_dims(argument)])
        else:
            made.append(argument)
    result = operator.again(tuple(made), None, None)
    if ndim:
        return result
    if isinstance(result, Tensor):
        return result.reshape(level.size)
    return [part.reshape(level.size) for part in result]


_ONE_DIM = frozenset({"prod", "argmax", "argmin"})


def _over_all(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    names = [parameter.name for parameter in cached_signature(operator).parameters]
    value = level.front(arguments[0]).reshape((level.size, arguments[0].numel()))
    made = [value if at == 0 else (1 if names[at] == "dim" else argument) for at, argument in enumerate(arguments)]
    keep = dict(zip(names, arguments, strict=True)).get("keepdim")
    if "keepdim" in names:
        made[names.index("keepdim")] = False
    result = operator.again(tuple(made), None, None)
    return result.reshape((level.size, *(1,) * arguments[0].ndim)) if keep else result


def _fft(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    ndim = arguments[0].ndim
    dim = arguments[1]
    shifted = wrapped_dim(dim, ndim) + 1 if isinstance(dim, int) else [wrapped_dim(entry, ndim) + 1 for entry in dim]
    return operator.again((level.front(arguments[0]), shifted, *arguments[2:]), None, None)


def _leading(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Do an operator that takes batches in front by itself; all tensors get as many dimensions."""
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    ndim = max(tensor.ndim for tensor in tensors)
    # Where one of them has a dimension less: the pivots of a factorization, the factors of reflections.
    fewer = {"linalg_lu_solve": 1, "linalg_householder_product": 1}.get(operator.name)
    if any(tensor.ndim < 2 for at, tensor in enumerate(tensors) if at != fewer) and len(tensors) > 1:
        return NotImplemented
    made = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            value = level.front(argument)
            missing = ndim - argument.ndim
            if fewer is not None and argument is arguments[fewer]:
                missing -= 1
            made.append(value.reshape((value.shape[0], *(1,) * missing, *value.shape[1:])) if missing > 0 else value)
        else:
            made.append(argument)
    return operator.again(tuple(made), None, None)


# ---- views and copies


def _view(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor = arguments[0]
    value = level.front(tensor)
    ndim = tensor.ndim
    name = operator.name
    if name in ("alias", "detach"):
        return operator.again((value,), None, None)
    if name == "view":
        return operator.again((value, (value.shape[0], *_sizes(arguments[1], tensor.numel()))), None, None)
    if name == "unflatten":
        dim = wrapped_dim(arguments[1], ndim)
        return operator.again((value, dim + 1, _sizes(arguments[2], tensor.shape[dim])), None, None)
    if name == "expand":
        sizes = list(arguments[1])
        added = len(sizes) - ndim
        if added > 0:
            value = value.reshape((value.shape[0], *(1,) * added, *value.shape[1:]))
        return operator.again((value, (value.shape[0], *sizes), *arguments[2:]), None, None)
    if name == "permute":
        return operator.again((value, (0, *(wrapped_dim(dim, ndim) + 1 for dim in arguments[1]))), None, None)
    if name == "movedim":
        source, destination = ([wrapped_dim(dim, ndim) + 1 for dim in _int_dims(entry)] for entry in arguments[1:])
        return operator.again((value, source, destination), None, None)
    if name == "t":
        return value if ndim < 2 else value.transpose(1, 2)
    if name == "squeeze":
        asked = range(ndim) if arguments[1] is None else {wrapped_dim(dim, ndim) for dim in _int_dims(arguments[1])}
        dims = [dim + 1 for dim in asked if dim < ndim and tensor.shape[dim] == 1]
        return operator.again((value, dims), None, None) if dims else ops.alias(value)
    if name == "unsqueeze":
        return operator.again((value, wrapped_dim(arguments[1], ndim + 1) + 1), None, None)
    if name == "as_strided":
        size, stride, offset = arguments[1:]
        offset = value.storage_offset() if offset is None else offset - tensor.storage_offset() + value.storage_offset()
        return value.as_strided((value.shape[0], *size), (value.stride(0), *stride), offset)
    if name == "transpose":
        if ndim == 0:
            return ops.alias(value)
        return operator.again((value, wrapped_dim(arguments[1], ndim) + 1, wrapped_dim(arguments[2], ndim) + 1), None, None)
    if name == "diagonal":
        offset, dim1, dim2 = arguments[1:]
        return operator.again((value, offset, wrapped_dim(dim1, ndim) + 1, wrapped_dim(dim2, ndim) + 1), None, None)
    if name in ("select", "slice", "narrow", "unfold"):
        if ndim == 0:
            return NotImplemented
        start = arguments[2]
        if isinstance(start, Tensor):
            return NotImplemented
        return operator.again((value, wrapped_dim(arguments[1], ndim) + 1, *arguments[2:]), None, None)
    return operator.again((value, *arguments[1:]), None, None)


def _sizes(sizes: Any, count: int) -> tuple[int, ...]:
    """Work out the size that is given as -1."""
    known = tuple(int(size) for size in sizes)
    if -1 not in known:
        return known
    rest = math.prod(size for size in known if size != -1)
    return tuple(size if size != -1 else (count // rest if rest else 0) for size in known)


def _copied(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    value, bdim = level.value_of(arguments[0])
    names = [parameter.name for parameter in cached_signature(operator).parameters]
    made = list(arguments)
    made[0] = value
    at = names.index("memory_format")
    if made[at] is not None and made[at] is not candelabra.preserve_format:
        # In order: that of the entries, whatever the memory format of a tensor with one more dimension would be.
        made[0] = value if bdim == 0 else value.movedim(bdim, 0)
        bdim = 0
        if made[at] is candelabra.channels_last:
            made[at] = None
    elif operator.name == "contiguous":
        made[0], bdim = (value if bdim == 0 else value.movedim(bdim, 0)), 0
    return Batched(operator.again(tuple(made), None, None), bdim)


def _fill(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    return operator.again((level.front(arguments[0]), *arguments[1:]), None, None)


# ---- joining


def _join(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensors, dim = arguments
    if operator.name == "cat":
        ndim = max(tensor.ndim for tensor in tensors)
        tensors = [tensor for tensor in tensors if ndim == 1 or tensor.shape != (0,)]
        return operator.again(([level.front(tensor) for tensor in tensors], wrapped_dim(dim, ndim) + 1), None, None)
    return operator.again(([level.front(tensor) for tensor in tensors], wrapped_dim(dim, tensors[0].ndim + 1) + 1), None, None)


# ---- at positions


def _scatter(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    ndim = arguments[0].ndim
    dim = wrapped_dim(arguments[1], ndim) + 1
    made = [
        (level.front(argument).unsqueeze(-1) if argument.ndim == 0 and ndim <= 1 else level.front(argument))
        if isinstance(argument, Tensor) else argument
        for argument in arguments
    ]  # fmt: skip
    made[1] = dim
    result = operator.again(tuple(made), None, None)
    if operator.name == "gather":
        return result.reshape((level.size, *arguments[2].shape))
    return result.squeeze(-1) if ndim == 0 else result


def _offset_rows(level: BatchLevel, index: Any, rows: int) -> Tensor:
    """Have the indices of each entry of the batch count in its own part of all rows in one."""
    value = level.front(index)
    value = candelabra.where(value < 0, value + rows, value)
    starts = candelabra.arange(level.size, device=value.device) * rows
    return value + starts.reshape((level.size, *(1,) * (value.ndim - 1)))


def _index_select(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, dim, index = arguments
    if tensor.ndim == 0:
        return NotImplemented
    dim = wrapped_dim(dim, tensor.ndim)
    if not level.is_batched(index):
        return operator.again((level.front(tensor), dim + 1, level.unwrap(index)), None, None)
    if index.ndim == 0:
        return NotImplemented
    value = level.front(tensor).movedim(dim + 1, 1)
    flat = value.reshape((value.shape[0] * value.shape[1], *value.shape[2:]))
    picked = operator.again((flat, 0, _offset_rows(level, index, tensor.shape[dim]).reshape(-1)), None, None)
    return picked.reshape((level.size, index.numel(), *value.shape[2:])).movedim(1, dim + 1)


def _index_write(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, dim, index, *rest = arguments
    if tensor.ndim == 0 or level.is_batched(index) or any(isinstance(entry, Tensor) and entry.ndim == 0 for entry in rest):
        return NotImplemented
    made = [level.front(entry) if isinstance(entry, Tensor) else entry for entry in rest]
    return operator.again((level.front(tensor), wrapped_dim(dim, tensor.ndim) + 1, level.unwrap(index), *made), None, None)


def _positions(level: BatchLevel, indices: Any) -> tuple[list[Any], int, int, bool] | None:
    """Prepare the indices of index(): with the batch's own in front. Also the number of their dimensions, where the first stands, and whether
    they stand side by side; None where a mask is among them whose entries differ in number."""
    given = [index for index in indices if index is not None]
    if any(index.dtype in (candelabra.bool, candelabra.uint8) for index in given):
        if any(level.is_batched(index) for index in given):
            return None
        expanded: list[Any] = []
        for index in indices:
            if index is not None and index.dtype in (candelabra.bool, candelabra.uint8):
                expanded += list(level.unwrap(index).nonzero().unbind(1))
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
        value, batched = level.front_or_plain(index)
        made.append(value.reshape((value.shape[0], *(1,) * (ndim - index.ndim), *value.shape[1:])) if batched else value)
    adjacent = places == list(range(places[0], places[-1] + 1))
    return made, ndim, places[0], adjacent


def _batch_index(level: BatchLevel, ndim: int, device: Any) -> Tensor:
    return candelabra.arange(level.size, device=device).reshape((level.size, *(1,) * ndim))


def _index(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, indices = arguments
    prepared = _positions(level, indices)
    if prepared is None:
        raise RuntimeError(
            "vmap: It looks like you're attempting to index with a boolean mask. We do not support batching operators that can support "
            "dynamic shape. Attempting to batch over indexing with a boolean mask."
        )
    made, ndim, first, adjacent = prepared
    if not level.is_batched(tensor):
        result = operator.again((level.unwrap(tensor), made), None, None)
        # The indices' dimensions stand where the first of them stood, with the batch first among them.
        return Batched(result, first if adjacent else 0)
    value = level.front(tensor)
    if not any(level.is_batched(index) for index in indices if index is not None):
        result = operator.again((value, [None, *made]), None, None)
        return Batched(result, 0 if adjacent else ndim)
    result = operator.again((value, [_batch_index(level, ndim, value.device), *made]), None, None)
    if not adjacent or first == 0:
        return result
    # With the batch's index in front they do not stand side by side any more, and their dimensions come first.
    return result.movedim(list(range(1, ndim + 1)), list(range(first + 1, first + 1 + ndim)))


def _index_put(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, indices, values, accumulate = arguments
    prepared = _positions(level, indices)
    if prepared is None:
        # A mask with a batch: its entries are as many numbers only where there is one value for all.
        given = [index for index in indices if index is not None]
        if len(given) == 1 and values.numel() == 1 and indices[0] is not None and not accumulate:
            return _masked_write(level, operator, tensor, given[0], values)
        return NotImplemented
    made, ndim, first, adjacent = prepared
    value = level.front(tensor)
    made = [_batch_index(level, ndim, value.device), *made]
    shape = candelabra.broadcast_shapes(*(tuple(index.shape) for index in made if index is not None))
    rest = [size for size, index in zip(value.shape[len(made) :], [None] * value.ndim, strict=False)]
    between = [value.shape[at] for at, index in enumerate(made) if index is None]
    trailing = [*between, *rest]
    source, batched = level.front_or_plain(values)
    # The sizes of one entry as the caller sees them: the indices' dimensions at the place of the first, or in front.
    before = between[:first] if adjacent else []
    after = trailing[len(before) :]
    entry = (*before, *shape[1:], *after)
    if batched:
        source = source.reshape((source.shape[0], *(1,) * (len(entry) - values.ndim), *source.shape[1:]))
    source = source.expand((level.size, *entry))
    if before:
        count = len(before)
        source = source.movedim(list(range(count + 1, count + 1 + ndim)), list(range(1, 1 + ndim)))
    return operator.again((value, made, source, accumulate), None, None)


def _masked_write(level: BatchLevel, operator: Any, tensor: Any, mask: Any, values: Any) -> Any:
    value = level.front(tensor)
    place = level.front(mask).to(candelabra.bool)
    place = place.reshape((*place.shape, *(1,) * (tensor.ndim - mask.ndim)))
    source = level.front(values).reshape((level.size, *(1,) * tensor.ndim)).to(value.dtype)
    made = candelabra.where(place, source, value)
    return value.copy_(made) if operator.functional is not None else made


def _masked_select(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Do masked_select() with a mask that is the same for all entries."""
    tensor, mask = arguments
    plain = level.unwrap(mask)
    shape = candelabra.broadcast_shapes(tuple(tensor.shape), tuple(plain.shape))
    value = level.front(tensor)
    value = value.reshape((level.size, *(1,) * (len(shape) - tensor.ndim), *tensor.shape)).expand((level.size, *shape))
    places = plain.expand(shape).reshape(-1).nonzero().reshape(-1)
    return value.reshape((level.size, math.prod(shape))).index_select(1, places)


def _take(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor, index = arguments
    if not level.is_batched(tensor):
        return operator.again((level.unwrap(tensor), level.front(index)), None, None)
    return operator.again((level.front(tensor), _offset_rows(level, index, tensor.numel())), None, None)


def _embedding(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    weight, indices, padding = arguments
    if not level.is_batched(weight):
        return operator.again((level.unwrap(weight), level.front(indices), padding), None, None)
    value = level.front(weight)
    flat = _joined(value, 0)
    return operator.again((flat, _offset_rows(level, indices, weight.shape[0]), -1), None, None)


def _embedding_backward(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, indices, rows, padding = arguments
    gradient = level.front(grad)
    if padding >= 0:
        gradient = gradient.masked_fill((level.front(indices) == padding).unsqueeze(-1), 0)
    made = operator.again((gradient, _offset_rows(level, indices, rows), rows * level.size, -1), None, None)
    return made.reshape((level.size, rows, *made.shape[1:]))


# ---- products


def _joined(value: Tensor, dim: int) -> Tensor:
    """Make dimensions `dim` and `dim` + 1 one."""
    return value.reshape((*value.shape[:dim], value.shape[dim] * value.shape[dim + 1], *value.shape[dim + 2 :]))


def _product(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    left, left_batched = level.front_or_plain(arguments[0])
    right, right_batched = level.front_or_plain(arguments[1])
    name = operator.name
    if not left_batched and not right_batched:
        made = operator.again((left, right), None, None)
        return made.unsqueeze(0).expand((level.size, *made.shape))
    if name == "dot":
        return (level.front(arguments[0]) * level.front(arguments[1])).sum(-1)
    if name == "mv":
        if not left_batched:
            return (left @ right.transpose(0, 1)).transpose(0, 1)
        return (left @ (right.unsqueeze(-1) if right_batched else right.reshape((-1, 1)))).squeeze(-1)
    if name == "bmm":
        if left_batched and right_batched:
            shape = (level.size, arguments[0].shape[0])
            made = ops.bmm(_joined(left, 0), _joined(right, 0))
            return made.reshape((*shape, *made.shape[1:]))
        return candelabra.matmul(left, right)
    if left_batched and right_batched:
        return ops.bmm(left, right)
    if left_batched:
        return ops.mm(_joined(left, 0), right).reshape((*left.shape[:-1], right.shape[-1]))
    # One matrix times many: the columns of all of them in one.
    columns = right.movedim(0, 1)
    made = ops.mm(left, _joined(columns, 1))
    return made.reshape((left.shape[0], level.size, right.shape[-1])).movedim(1, 0)


def _added_product(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    if operator.functional is not None:
        return NotImplemented
    added, left, right, beta, alpha = arguments
    product = ops.mm if operator.name == "addmm" else ops.bmm
    made = _product(level, product, (left, right))
    if alpha != 1:
        made = made * alpha
    if beta == 0:
        return made
    value, batched = level.front_or_plain(added)
    if batched:
        value = value.reshape((value.shape[0], *(1,) * (made.ndim - 1 - added.ndim), *value.shape[1:]))
    return made + (value if beta == 1 else value * beta)


def _linear(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    data, weight, bias = arguments
    if data.ndim < 2 and level.is_batched(weight):
        return NotImplemented
    if not level.is_batched(weight) and not level.is_batched(bias):
        plain = level.unwrap(bias) if isinstance(bias, Tensor) else None
        return operator.again((level.front(data), level.unwrap(weight), plain), None, None)
    value, batched = level.front_or_plain(data)
    matrix, _ = level.front_or_plain(weight)
    matrix = matrix.transpose(-1, -2)
    rows = math.prod(data.shape[:-1])
    flat = value.reshape((level.size, rows, value.shape[-1])) if batched else value.reshape((rows, value.shape[-1]))
    made = candelabra.matmul(flat, matrix)
    if made.ndim == 2:
        made = made.unsqueeze(0).expand((level.size, *made.shape))
    if bias is not None:
        added, has_batch = level.front_or_plain(bias)
        made = made + (added.unsqueeze(1) if has_batch else added)
    return made.reshape((level.size, *data.shape[:-1], made.shape[-1]))


# ---- layers: the batch becomes part of a dimension that the layer has


def _fold(value: Tensor, dim: int) -> Tensor:
    """Make the batch, in front, part of dimension `dim` (counted without it)."""
    moved = value if dim == 0 else value.movedim(0, dim)
    return _joined(moved, dim)


def _unfold_batch(level: BatchLevel, value: Tensor, dim: int) -> Tensor:
    """Take the batch out of dimension `dim` again, to the front."""
    made = value.reshape((*value.shape[:dim], level.size, value.shape[dim] // max(level.size, 1), *value.shape[dim + 1 :]))
    return made if dim == 0 else made.movedim(dim, 0)


def _convolution(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    data, weight, bias, *options, groups = arguments
    added = level.front(bias) if level.is_batched(bias) else None
    plain_bias = level.unwrap(bias) if bias is not None and added is None else None
    if not level.is_batched(weight):
        if level.is_batched(data):
            made = operator.again((_fold(level.front(data), 0), level.unwrap(weight), plain_bias, *options, groups), None, None)
            made = _unfold_batch(level, made, 0)
        else:
            made = operator.again((level.unwrap(data), level.unwrap(weight), None, *options, groups), None, None)
            made = made.unsqueeze(0).expand((level.size, *made.shape))
    else:
        # Each entry of the batch has a weight of its own: they are groups of channels.
        folded = _fold(level.front(data), 1)
        made = operator.again((folded, _fold(level.front(weight), 0), None, *options, groups * level.size), None, None)
        made = _unfold_batch(level, made, 1)
        if plain_bias is not None:
            made = made + plain_bias.reshape((1, 1, -1, *(1,) * (made.ndim - 3)))
    if added is not None:
        made = made + added.reshape((level.size, 1, -1, *(1,) * (made.ndim - 3)))
    return made


def _convolution_input_gradient(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, weight, size, *options, groups = arguments
    if not level.is_batched(weight):
        folded = _fold(level.front(grad), 0)
        made = operator.again((folded, level.unwrap(weight), (folded.shape[0], *size[1:]), *options, groups), None, None)
        return _unfold_batch(level, made, 0)
    folded_size = (size[0], size[1] * level.size, *size[2:])
    made = operator.again(
        (_fold(level.front(grad), 1), _fold(level.front(weight), 0), folded_size, *options, groups * level.size), None, None
    )
    return _unfold_batch(level, made, 1)


def _convolution_weight_gradient(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, data, size, *options, groups = arguments
    folded_size = (size[0] * level.size, *size[1:])
    made = operator.again(
        (_fold(level.front(grad), 1), _fold(level.front(data), 1), folded_size, *options, groups * level.size), None, None
    )
    return _unfold_batch(level, made, 0)


def _folded(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Do an operator all of whose tensors have entries along their first dimension that nothing mixes."""
    names = [parameter.name for parameter in cached_signature(operator).parameters]
    made: list[Any] = []
    for name, argument in zip(names, arguments, strict=True):
        if isinstance(argument, Tensor):
            made.append(_fold(level.front(argument), 0))
        elif name == "input_size" and len(argument) == arguments[0].ndim:
            made.append((argument[0] * level.size, *argument[1:]))
        else:
            made.append(argument)
    result = operator.again(tuple(made), None, None)
    if isinstance(result, Tensor):
        return _unfold_batch(level, result, 0)
    return [_unfold_batch(level, part, 0) for part in result]


def _attention(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Fold the batch as :func:`_folded` does; the mask may have fewer dimensions than the others."""
    place = 3 if operator.name == "attention_forward" else 4
    mask, query = arguments[place], arguments[place - 3]
    if mask is not None:
        value = level.front(mask)
        value = value.reshape((level.size, *(1,) * (4 - mask.ndim), *mask.shape))
        value = value.expand((level.size, query.shape[0], *value.shape[2:]))
        arguments = (*arguments[:place], level.wrap(value, 0), *arguments[place + 1 :])
    return _folded(level, operator, arguments)


def _nll_loss_forward(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    scores, target, weight, reduction, ignored = arguments
    if level.is_batched(weight) or scores.ndim == 0:
        return NotImplemented
    plain = level.unwrap(weight) if weight is not None else None
    values, classes = level.front(scores), level.front(target)
    single = scores.ndim == 1
    if not single:
        values, classes = _fold(values, 0), _fold(classes, 0)
    losses, _ = operator.again((values, classes, plain, 0, ignored), None, None)
    if not single:
        losses, classes = _unfold_batch(level, losses, 0), _unfold_batch(level, classes, 0)
    counted = classes != ignored
    if plain is None:
        totals = counted.to(losses.dtype)
    else:
        totals = candelabra.where(counted, plain.take(candelabra.where(counted, classes, 0)), 0)
    total = totals.reshape((level.size, -1)).sum(1)
    if reduction == 0:
        return [losses, total]
    summed = losses.reshape((level.size, -1)).sum(1)
    return [summed / total if reduction == 1 else summed, total]


def _nll_loss_backward(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    grad, scores, target, weight, reduction, ignored, total = arguments
    if level.is_batched(weight):
        return NotImplemented
    plain = level.unwrap(weight) if weight is not None else None
    values, classes = level.front(scores), level.front(target)
    gradient = level.front(grad)
    if reduction != 0:
        if reduction == 1:
            gradient = gradient / level.front(total)
        gradient = gradient.reshape((level.size, *(1,) * target.ndim)).expand(classes.shape)
    empty = candelabra.zeros((), dtype=values.dtype, device=values.device)
    if scores.ndim == 1:
        return operator.again((gradient, values, classes, plain, 0, ignored, empty), None, None)
    made = operator.again((_fold(gradient, 0), _fold(values, 0), _fold(classes, 0), plain, 0, ignored, empty), None, None)
    return _unfold_batch(level, made, 0)


def _layer_norm(level: BatchLevel, operator: Any, arguments: tuple[Any, ...]) -> Any:
    data, shape, weight, bias, eps = arguments
    if level.is_batched(weight) or level.is_batched(bias):
        return NotImplemented
    plain = [level.unwrap(entry) if entry is not None else None for entry in (weight, bias)]
    return operator.again((level.front(data), shape, *plain, eps), None, None)


# ---- the table

RULES: dict[str, Rule] = {}


def _enter(rule: Rule, *names: str) -> None:
    for name in names:
        RULES[name] = rule


_enter(_elementwise, "threshold_backward", "sigmoid_backward", "tanh_backward", "gcd", "lcm", "copy_", "frexp")
_enter(_masked_fill, "masked_fill")
_enter(
    _along, "sum", "mean", "prod", "amax", "amin", "any", "all", "var", "std", "linalg_vector_norm", "logsumexp", "cumsum", "cumprod",
    "sort", "topk", "max_with_indices", "min_with_indices", "argmax", "argmin", "softmax", "log_softmax", "softmax_backward",
    "log_softmax_backward", "flip",
)  # fmt: skip
_enter(_fft, "fft_c2c", "fft_r2c", "fft_c2r")
_enter(
    _leading, "linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_ldl_factor_ex", "geqrf", "linalg_qr", "linalg_householder_product",
    "linalg_eigh_ex", "linalg_eig_ex", "linalg_svd_ex", "linalg_solve_ex", "linalg_inv_ex", "linalg_solve_triangular", "linalg_det",
    "linalg_slogdet", "tril", "triu", "cholesky_solve", "linalg_lu_solve",
)  # fmt: skip
_enter(
    _view, "alias", "detach", "view", "unflatten", "expand", "permute", "movedim", "t", "squeeze", "unsqueeze", "as_strided", "transpose",
    "diagonal", "select", "slice", "narrow", "unfold", "view_as_real", "view_as_complex",
)  # fmt: skip
_enter(_copied, "clone", "contiguous", "to_copy")
_enter(_fill, "fill_")
_enter(_join, "cat", "stack")
_enter(_scatter, "gather", "scatter", "scatter_add")
_enter(_index_select, "index_select")
_enter(_index_write, "index_add", "index_copy", "index_fill")
_enter(_index, "index")
_enter(_index_put, "index_put")
_enter(_masked_select, "masked_select")
_enter(_take, "take")
_enter(_embedding, "embedding")
_enter(_embedding_backward, "embedding_backward")
_enter(_product, "mm", "bmm", "mv", "dot")
_enter(_added_product, "addmm", "baddbmm")
_enter(_linear, "linear")
_enter(_convolution, "convolution")
_enter(_convolution_input_gradient, "convolution_input_gradient")
_enter(_convolution_weight_gradient, "convolution_weight_gradient")
_enter(
    _folded, "max_pool", "max_pool_values", "adaptive_max_pool", "max_pool_backward", "avg_pool", "avg_pool_backward",
    "adaptive_avg_pool", "adaptive_avg_pool_backward", "patches", "patches_backward",
)  # fmt: skip
_enter(_attention, "attention_forward", "attention_backward")
_enter(_nll_loss_forward, "nll_loss_forward")
_enter(_nll_loss_backward, "nll_loss_backward")
_enter(_layer_norm, "native_layer_norm")


def rule_of(operator: Any) -> Rule | None:
    """Give the rule of an operator, or of the one it is the in-place variant of."""
    base = operator.functional or operator
    rule = RULES.get(base.name)
    if rule is None and "::" in base.name:
        from ..custom_operators import batch_rule_of

        rule = batch_rule_of(base)
    if rule is None and base.elementwise:
        return _elementwise
    return rule
