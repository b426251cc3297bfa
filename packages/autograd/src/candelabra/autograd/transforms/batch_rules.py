"""Batch rules: apply an operator to all entries of a batch at once.

A rule is called as ``rule(layer, operator, arguments)``, outside of the layer, with the original
arguments. It returns results with the batch as their first dimension, or NotImplemented.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, ops
from candelabra.catalogue import FACTS

from ..table import ROWS
from .batch_layers import (
    attention,
    convolution,
    convolution_backward_input,
    convolution_backward_weight,
    folded,
    layer_norm,
    nll_loss_backward,
    nll_loss_forward,
)
from .batch_positions import (
    embedding,
    embedding_backward,
    index_put,
    index_rule,
    index_select,
    index_write,
    masked_select,
    scatter,
    take_rule,
)
from .batch_shapes import Batched, int_dims, joined_dims, wrapped_dim
from .custom import batch_rule_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .vmap_layer import VmapLayer

    Rule = Callable[[VmapLayer, Any, tuple[Any, ...]], Any]


# ---- elementwise operators


def _elementwise(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    ndim = max(tensor.ndim for tensor in tensors)
    dtypes = {tensor.dtype for tensor in tensors}
    common = None
    if (
        len(dtypes) > 1
        and operator.name != "copy_"
        and not (operator.functional or operator).name.startswith(("where", "masked_fill"))
    ):
        # In type promotion a 0-D tensor has lower priority. Promote before the batch adds a
        # dimension.
        common = candelabra.result_type(tensors[0], tensors[1])
        for tensor in tensors[2:]:
            common = candelabra.promote_types(common, candelabra.result_type(tensor, tensor))
    made = []
    for argument in arguments:
        if not isinstance(argument, Tensor):
            made.append(argument)
            continue
        value, batched = layer.front_or_plain(argument)
        if batched:
            missing = ndim - argument.ndim
            if missing:
                value = value.reshape((value.shape[0], *(1,) * missing, *value.shape[1:]))
        elif operator.functional is not None and argument is arguments[0]:
            return NotImplemented
        if (
            common is not None
            and value.dtype is not common
            and not (operator.functional is not None and argument is arguments[0])
        ):
            value = value.to(common)
        made.append(value)
    row = ROWS.get(operator.name)
    if row is not None and not row.broadcast and len(tensors) > 1:
        # The gradient formulas of this operator are for inputs of one shape.
        shapes = [value.shape for value in made if isinstance(value, Tensor)]
        shape = candelabra.broadcast_shapes(*shapes)
        made = [value.expand(shape) if isinstance(value, Tensor) else value for value in made]
    return operator.again(tuple(made), None, None)


def _masked_fill(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply masked_fill(), through where() if the value is batched."""
    tensor, mask, value = arguments
    if not layer.is_batched(value):
        return _elementwise(layer, operator, arguments)
    if value.ndim:
        raise RuntimeError(
            f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    ndim = max(tensor.ndim, mask.ndim)
    target, place = (
        part.reshape((layer.size, *(1,) * (ndim - of.ndim), *of.shape))
        for part, of in ((layer.front(tensor), tensor), (layer.front(mask), mask))
    )
    made = candelabra.where(place, layer.front(value).reshape((layer.size, *(1,) * ndim)).to(tensor.dtype), target)
    return layer.front(tensor).copy_(made) if operator.functional is not None else made


# ---- operators along dimensions


def _along(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply an operator with ``dim`` or ``dims`` arguments, which are increased by one.

    All tensor arguments must have the same number of dimensions.
    """
    ndim = arguments[0].ndim
    made: list[Any] = []
    for name, argument in zip(operator.parameters, arguments, strict=True):
        if isinstance(argument, Tensor):
            value = layer.front(argument)
            made.append(value.unsqueeze(-1) if argument.ndim == 0 else value)
        elif name in ("dim", "dims"):
            if isinstance(argument, int):
                made.append(wrapped_dim(argument, ndim) + 1)
            elif argument is None or not argument:
                if name == "dims":
                    made.append([])
                elif operator.name in _ONE_DIM:
                    return _over_all(layer, operator, arguments)
                else:
                    made.append(list(range(1, max(ndim, 1) + 1)))
            else:
                made.append([wrapped_dim(dim, ndim) + 1 for dim in int_dims(argument)])
        else:
            made.append(argument)
    result = operator.again(tuple(made), None, None)
    if ndim:
        return result
    if isinstance(result, Tensor):
        return result.reshape(layer.size)
    return [part.reshape(layer.size) for part in result]


_ONE_DIM = frozenset({"prod", "argmax", "argmin"})


def _over_all(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    names = operator.parameters
    value = layer.front(arguments[0]).reshape((layer.size, arguments[0].numel()))
    made = [value if at == 0 else (1 if names[at] == "dim" else argument) for at, argument in enumerate(arguments)]
    keep = dict(zip(names, arguments, strict=True)).get("keepdim")
    if "keepdim" in names:
        made[names.index("keepdim")] = False
    result = operator.again(tuple(made), None, None)
    return result.reshape((layer.size, *(1,) * arguments[0].ndim)) if keep else result


def _fft(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    ndim = arguments[0].ndim
    dim = arguments[1]
    shifted = wrapped_dim(dim, ndim) + 1 if isinstance(dim, int) else [wrapped_dim(entry, ndim) + 1 for entry in dim]
    return operator.again((layer.front(arguments[0]), shifted, *arguments[2:]), None, None)


def _leading(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply an operator that supports leading batch dimensions; pad tensors to one rank."""
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    ndim = max(tensor.ndim for tensor in tensors)
    # Position of the argument with one dimension less: LU pivots, or Householder scales.
    fewer = {"linalg_lu_solve": 1, "linalg_householder_product": 1}.get(operator.name)
    if any(tensor.ndim < 2 for at, tensor in enumerate(tensors) if at != fewer) and len(tensors) > 1:
        return NotImplemented
    made = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            value = layer.front(argument)
            missing = ndim - argument.ndim
            if fewer is not None and argument is arguments[fewer]:
                missing -= 1
            made.append(value.reshape((value.shape[0], *(1,) * missing, *value.shape[1:])) if missing > 0 else value)
        else:
            made.append(argument)
    return operator.again(tuple(made), None, None)


# ---- views and copies


def _view(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensor = arguments[0]
    value = layer.front(tensor)
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
        source, destination = ([wrapped_dim(dim, ndim) + 1 for dim in int_dims(entry)] for entry in arguments[1:])
        return operator.again((value, source, destination), None, None)
    if name == "t":
        return value if ndim < 2 else value.transpose(1, 2)
    if name == "squeeze":
        asked = range(ndim) if arguments[1] is None else {wrapped_dim(dim, ndim) for dim in int_dims(arguments[1])}
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
        return operator.again(
            (value, wrapped_dim(arguments[1], ndim) + 1, wrapped_dim(arguments[2], ndim) + 1), None, None
        )
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
    """Replace -1 by the inferred size."""
    known = tuple(int(size) for size in sizes)
    if -1 not in known:
        return known
    rest = math.prod(size for size in known if size != -1)
    return tuple(size if size != -1 else (count // rest if rest else 0) for size in known)


def _copied(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    value, bdim = layer.value_of(arguments[0])
    names = operator.parameters
    made = list(arguments)
    made[0] = value
    at = names.index("memory_format")
    if made[at] is not None and made[at] is not candelabra.preserve_format:
        # The memory format refers to one entry, so the batch must come first.
        made[0] = value if bdim == 0 else value.movedim(bdim, 0)
        bdim = 0
        if made[at] in (candelabra.channels_last, candelabra.channels_last_3d):
            made[at] = None
    elif operator.name == "contiguous":
        made[0], bdim = (value if bdim == 0 else value.movedim(bdim, 0)), 0
    return Batched(operator.again(tuple(made), None, None), bdim)


def _fill(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    return operator.again((layer.front(arguments[0]), *arguments[1:]), None, None)


# ---- concatenation


def _join(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    tensors, dim = arguments
    if operator.name == "cat":
        ndim = max(tensor.ndim for tensor in tensors)
        tensors = [tensor for tensor in tensors if ndim == 1 or tensor.shape != (0,)]
        return operator.again(([layer.front(tensor) for tensor in tensors], wrapped_dim(dim, ndim) + 1), None, None)
    return operator.again(
        ([layer.front(tensor) for tensor in tensors], wrapped_dim(dim, tensors[0].ndim + 1) + 1), None, None
    )


# ---- products


def _product(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    left, left_batched = layer.front_or_plain(arguments[0])
    right, right_batched = layer.front_or_plain(arguments[1])
    name = operator.name
    if not left_batched and not right_batched:
        made = operator.again((left, right), None, None)
        return made.unsqueeze(0).expand((layer.size, *made.shape))
    if name == "dot":
        return (layer.front(arguments[0]) * layer.front(arguments[1])).sum(-1)
    if name == "mv":
        if not left_batched:
            return (left @ right.transpose(0, 1)).transpose(0, 1)
        return (left @ (right.unsqueeze(-1) if right_batched else right.reshape((-1, 1)))).squeeze(-1)
    if name == "bmm":
        if left_batched and right_batched:
            shape = (layer.size, arguments[0].shape[0])
            made = ops.bmm(joined_dims(left, 0), joined_dims(right, 0))
            return made.reshape((*shape, *made.shape[1:]))
        return candelabra.matmul(left, right)
    if left_batched and right_batched:
        return ops.bmm(left, right)
    if left_batched:
        return ops.mm(joined_dims(left, 0), right).reshape((*left.shape[:-1], right.shape[-1]))
    # One matrix times a batch: join the columns of all entries.
    columns = right.movedim(0, 1)
    made = ops.mm(left, joined_dims(columns, 1))
    return made.reshape((left.shape[0], layer.size, right.shape[-1])).movedim(1, 0)


def _added_product(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    if operator.functional is not None:
        return NotImplemented
    added, left, right, beta, alpha = arguments
    product = ops.mm if operator.name == "addmm" else ops.bmm
    made = _product(layer, product, (left, right))
    if alpha != 1:
        made = made * alpha
    if beta == 0:
        return made
    value, batched = layer.front_or_plain(added)
    if batched:
        value = value.reshape((value.shape[0], *(1,) * (made.ndim - 1 - added.ndim), *value.shape[1:]))
    return made + (value if beta == 1 else value * beta)


def _linear(layer: VmapLayer, operator: Any, arguments: tuple[Any, ...]) -> Any:
    data, weight, bias = arguments
    if data.ndim < 2 and layer.is_batched(weight):
        return NotImplemented
    if not layer.is_batched(weight) and not layer.is_batched(bias):
        plain = layer.unwrap(bias) if isinstance(bias, Tensor) else None
        return operator.again((layer.front(data), layer.unwrap(weight), plain), None, None)
    value, batched = layer.front_or_plain(data)
    matrix, _ = layer.front_or_plain(weight)
    matrix = matrix.transpose(-1, -2)
    rows = math.prod(data.shape[:-1])
    flat = value.reshape((layer.size, rows, value.shape[-1])) if batched else value.reshape((rows, value.shape[-1]))
    made = candelabra.matmul(flat, matrix)
    if made.ndim == 2:
        made = made.unsqueeze(0).expand((layer.size, *made.shape))
    if bias is not None:
        added, has_batch = layer.front_or_plain(bias)
        made = made + (added.unsqueeze(1) if has_batch else added)
    return made.reshape((layer.size, *data.shape[:-1], made.shape[-1]))


# ---- the table of rules

#: Rules by the names used in catalogue rows.
NAMED: dict[str, Rule] = {
    "elementwise": _elementwise,
    "masked_fill": _masked_fill,
    "along": _along,
    "fft": _fft,
    "leading": _leading,
    "view": _view,
    "copied": _copied,
    "fill": _fill,
    "join": _join,
    "scatter": scatter,
    "index_select": index_select,
    "index_write": index_write,
    "index_rule": index_rule,
    "index_put": index_put,
    "masked_select": masked_select,
    "take_rule": take_rule,
    "embedding": embedding,
    "embedding_backward": embedding_backward,
    "product": _product,
    "added_product": _added_product,
    "linear": _linear,
    "convolution": convolution,
    "convolution_backward_input": convolution_backward_input,
    "convolution_backward_weight": convolution_backward_weight,
    "folded": folded,
    "attention": attention,
    "nll_loss_forward": nll_loss_forward,
    "nll_loss_backward": nll_loss_backward,
    "layer_norm": layer_norm,
}
#: Rules by operator name.
RULES: dict[str, Rule] = {name: NAMED[facts.batching] for name, facts in FACTS.items() if facts.batching}


def rule_of(operator: Any) -> Rule | None:
    """Return the rule of an operator, or of the functional form of an in-place one."""
    base = operator.functional or operator
    rule = RULES.get(base.name)
    if rule is None and "::" in base.name:
        rule = batch_rule_of(base)
    if rule is None and base.elementwise:
        return _elementwise
    return rule
