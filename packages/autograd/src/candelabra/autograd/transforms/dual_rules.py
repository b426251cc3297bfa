"""Tangents of results, computed from the tangents of arguments.

- Operators that are linear in their first argument are applied to its tangent.
- Elementwise operators have a diagonal Jacobian, so their gradient formula also maps tangents.
- Bilinear operators use the product rule.
- Composites are decomposed.
- All other operators use double backward. The gradient is linear in the incoming gradient; its
  derivative with respect to that is the Jacobian-vector product.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, ops
from candelabra.catalogue import FACTS, OPERATORS

from ..engine import walk_back
from ..fitting import fit, like
from ..functorch_layers import COMPOSITE, NONDIFFERENTIABLE, differentiable, entered
from ..table import ROWS, WRITTEN
from .grad_layer import GradLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _positions(operator: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(operator.parameters.index(name) for name in names)


#: Operators that are linear in the first argument, for any values of the others.
LINEAR = frozenset(
    name
    for name, facts in FACTS.items()
    if len(facts.linear) == 1 and _positions(OPERATORS[name], facts.linear) == (0,)
)
#: Operators that are linear in each of two arguments, and the positions of these.
BILINEAR = {name: _positions(OPERATORS[name], facts.bilinear) for name, facts in FACTS.items() if facts.bilinear}
#: Operators that are jointly linear in several arguments, and the positions of these.
JOINTLY_LINEAR = {
    name: _positions(OPERATORS[name], facts.linear)
    for name, facts in FACTS.items()
    if facts.linear and name not in LINEAR
}
#: What the rows say of other tangents; see `candelabra.catalogue.declaration.operator`.
JVP = {name: facts.jvp for name, facts in FACTS.items() if facts.jvp}


def goes_by_decomposition(operator: Any) -> bool:
    """Return whether an operator's tangents are computed through its decomposition."""
    name = operator.name
    if operator.composite is None or name in LINEAR or name in BILINEAR or name in RULES:
        return False
    return bool(operator.tags & COMPOSITE) and (
        JVP.get(name) == "composite" or (name not in ROWS and name not in WRITTEN)
    )


def evaluate(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any], generator: Any) -> tuple[Any, Any]:
    """Compute results and their tangents (None if there is none)."""
    name = operator.name
    if operator.tags & NONDIFFERENTIABLE:
        return operator.again(primals, None, generator), None
    if name in LINEAR:
        result = operator.again(primals, None, generator)
        if tangents[0] is None or not differentiable(result):
            return result, None
        if name == "frac":
            return result, tangents[0]
        if name == "as_strided":
            tangent = _strided_tangent(primals, tangents[0], result)
            return (result, tangent) if tangent is not None else by_transposing(operator, primals, tangents, generator)
        if name == "index_fill":
            return result, operator.again((tangents[0], *primals[1:3], 0), None, None)
        return result, operator.again((tangents[0], *primals[1:]), None, None)
    special = RULES.get(name)
    if special is not None:
        return special(operator, primals, tangents)
    if name in BILINEAR:
        return operator.again(primals, None, generator), _product_rule(operator, primals, tangents, BILINEAR[name])
    if name in JOINTLY_LINEAR:
        result = operator.again(primals, None, generator)
        return result, _jointly(operator, primals, tangents, JOINTLY_LINEAR[name])
    if operator.elementwise or JVP.get(name, "").startswith("elementwise"):
        made = _by_formulas(operator, primals, tangents, generator)
        if made is not None:
            return made
    return by_transposing(operator, primals, tangents, generator)


def _strided_tangent(primals: tuple[Any, ...], tangent: Tensor, result: Tensor) -> Tensor | None:
    """Apply as_strided() to a tangent; return None if the result reaches beyond the tensor."""
    value = primals[0]
    start, end = _extent(value)
    first, last = _extent(result)
    if first < start or last > end:
        return None
    if tangent.stride() != value.stride():
        tangent = ops.empty_strided(value.shape, value.stride(), dtype=tangent.dtype, device=tangent.device).copy_(
            tangent
        )
    offset = result.storage_offset() - value.storage_offset() + tangent.storage_offset()
    return tangent.as_strided(primals[1], primals[2], offset)


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Return the storage offsets of the first and the last element."""
    first = tensor.storage_offset()
    return first, first + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size
    )


def _total(parts: list[Tensor]) -> Tensor | None:
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _product_rule(
    operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any], positions: tuple[int, ...]
) -> Tensor | None:
    parts = []
    for position in positions:
        tangent = tangents[position]
        if tangent is not None:
            parts.append(operator.again((*primals[:position], tangent, *primals[position + 1 :]), None, None))
    return _total(parts)


def _jointly(
    operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any], positions: tuple[int, ...]
) -> Tensor | None:
    arguments = list(primals)
    for position in positions:
        primal, tangent = primals[position], tangents[position]
        if tangent is not None:
            arguments[position] = tangent
        elif isinstance(primal, Tensor):
            arguments[position] = candelabra.zeros_like(primal)
        else:
            arguments[position] = 0
    return operator.again(tuple(arguments), None, None)


def _by_formulas(
    operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any], generator: Any
) -> tuple[Any, Any] | None:
    """Apply gradient formulas to tangents, for holomorphic elementwise functions."""
    row = ROWS.get(operator.name)
    if row is None or row.joint is not None or isinstance(operator.result_type, type):
        return None
    complex_ones = any(isinstance(primal, Tensor) and primal.is_complex() for primal in primals)
    is_holomorphic = JVP.get(operator.name) != "elementwise reals"
    if complex_ones and not is_holomorphic:
        return None
    parameters = operator.parameters
    moving = [position for position, tangent in enumerate(tangents) if tangent is not None]
    if any(parameters[position] not in row.formulas for position in moving):
        return None
    result = operator.again(primals, None, generator)
    if not differentiable(result):
        return result, None
    if result.is_complex() and not is_holomorphic:
        return None
    values = dict(zip(parameters, primals, strict=True))
    parts: list[Any] = []
    for position in moving:
        tangent = tangents[position]
        if tangent.dtype is not result.dtype:
            tangent = tangent.to(result.dtype)
        if tangent.shape != result.shape:
            tangent = tangent.expand(result.shape)
        formula = row.formulas[parameters[position]]
        conjugated = result.is_complex()
        made = formula(ops.conj_physical(tangent) if conjugated else tangent, *_named_values(formula, values, result))
        parts.append(ops.conj_physical(made) if conjugated and made.is_complex() else made)
    return result, _total(parts)


def _named_values(formula: Callable[..., Any], values: dict[str, Any], result: Tensor) -> list[Any]:
    code = formula.__code__
    made: list[Any] = []
    for name in code.co_varnames[1 : code.co_argcount]:
        if name == "result":
            made.append(result)
        elif name in values:
            made.append(values[name])
        else:
            argument, _, what = name.rpartition("_")
            value = values[argument]
            made.append(value if not isinstance(value, Tensor) else {"shape": value.shape, "dtype": value.dtype}[what])
    return made


def by_transposing(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any], generator: Any) -> tuple[Any, Any]:
    """Compute tangents by double backward."""
    layer = GradLayer()
    with entered(layer), candelabra.enable_grad():
        inputs: list[Tensor] = []
        directions: list[Tensor] = []

        def variable(primal: Any, tangent: Any) -> Any:
            if isinstance(tangent, list):
                return tuple(map(variable, primal, tangent))
            if tangent is None or not differentiable(primal):
                return primal
            made = layer.variable(primal)
            inputs.append(made)
            directions.append(layer.wrap(tangent))
            return made

        own = tuple(variable(primal, tangent) for primal, tangent in zip(primals, tangents, strict=True))
        result = operator.again(own, None, generator)
        several = result if isinstance(result, tuple) else (result,)
        tangents_of_results = [
            _transposed(part, inputs, directions) if isinstance(part, Tensor) and part.requires_grad else None
            for part in several
        ]
        values = [layer.unwrap(part) for part in several]
        moved = [layer.unwrap(part) for part in tangents_of_results]
    if not isinstance(result, tuple):
        return values[0], moved[0]
    kind = type(result)
    return (tuple(values) if kind is tuple else kind(values)), moved


def _transposed(output: Tensor, inputs: list[Tensor], directions: list[Tensor]) -> Tensor:
    shadow = candelabra.zeros_like(output._detached())
    shadow = shadow._detached()
    shadow.requires_grad = True
    first = walk_back([(output._edge, shadow)], True, True, inputs)
    assert first is not None
    pairs = [
        (part, direction)
        for part, direction in zip(first, directions, strict=True)
        if part is not None and part.requires_grad
    ]
    if not pairs:
        return candelabra.zeros_like(output._detached())
    roots = [
        (part._edge, direction if direction.dtype is part.dtype else fit(direction, like(part)))
        for part, direction in pairs
    ]
    transposed = walk_back(roots, False, False, (shadow,))
    assert transposed is not None
    (made,) = transposed
    return candelabra.zeros_like(output._detached()) if made is None else made


# ---- rules for single operators


def _cat(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    result = operator.again(primals, None, None)
    parts = [
        candelabra.zeros_like(primal) if tangent is None else tangent
        for primal, tangent in zip(primals[0], tangents[0], strict=True)
    ]
    return result, operator.again((parts, *primals[1:]), None, None)


def _convolution(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    result = operator.again(primals, None, None)
    data, weight, _, *rest = primals
    of_data, of_weight, of_bias = tangents[:3]
    if of_data is not None:
        made = operator.again((of_data, weight, of_bias, *rest), None, None)
        return result, made if of_weight is None else made + operator.again((data, of_weight, None, *rest), None, None)
    if of_weight is not None:
        return result, operator.again((data, of_weight, of_bias, *rest), None, None)
    shape = [1] * result.ndim
    shape[1] = -1
    return result, of_bias.reshape(shape).expand(result.shape)


def _addmm(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    result = operator.again(primals, None, None)
    _, left, right, beta, alpha = primals
    product = ops.mm if operator.name == "addmm" else ops.bmm
    parts = []
    if tangents[0] is not None:
        parts.append((tangents[0] * beta).expand(result.shape))
    if tangents[1] is not None:
        parts.append(product(tangents[1], right) * alpha)
    if tangents[2] is not None:
        parts.append(product(left, tangents[2]) * alpha)
    return result, _total(parts)


def _gather(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Apply an operator that selects values along a dimension; select the same tangents."""
    result = operator.again(primals, None, None)
    values, indices = result
    tangent = tangents[0]
    dim = primals[2] if operator.name == "topk" else primals[1]
    if tangent.ndim == 0:
        return result, [tangent.reshape(values.shape), None]
    if values.ndim == tangent.ndim:
        return result, [tangent.gather(dim, indices), None]
    return result, [tangent.gather(dim, indices.unsqueeze(dim)).squeeze(dim), None]


def _abs(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (value,), tangent = primals, tangents[0]
    result = operator.again(primals, None, None)
    if not value.is_complex():
        return result, tangent * value.sgn()
    return result, (tangent * ops.conj_physical(value.sgn())).real


def _angle(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (value,), tangent = primals, tangents[0]
    result = operator.again(primals, None, None)
    if not value.is_complex():
        return result, candelabra.zeros_like(result)
    size = value.abs()
    zero = size == 0
    rotated = (tangent * ops.conj_physical(value.sgn())).imag
    return result, candelabra.where(zero, 0, rotated / candelabra.where(zero, 1, size))


def _sgn(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (value,), tangent = primals, tangents[0]
    result = operator.again(primals, None, None)
    if not value.is_complex():
        return result, candelabra.zeros_like(result)
    size = value.abs()
    zero = size == 0
    across = (tangent - (ops.conj_physical(result) * tangent).real * result) / candelabra.where(zero, 1, size)
    return result, candelabra.where(zero, 0, across)


def _softmax(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    result = operator.again(primals, None, None)
    tangent = tangents[0].to(result.dtype)
    if operator.name == "softmax":
        weighted = tangent * result
        return result, weighted - result * weighted.sum(primals[1], True)
    return result, tangent - (result.exp() * tangent).sum(primals[1], True)


def _logsumexp(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, dim, keepdim = primals
    result = operator.again(primals, None, None)
    kept = result if keepdim else operator.again((value, dim, True), None, None)
    weights = (value - candelabra.where(kept == -math.inf, 0, kept)).exp()
    return result, (weights * tangents[0]).sum(dim, keepdim) if value.ndim else weights * tangents[0]


#: Rules by the names that the rows of the catalogue use.
NAMED: dict[str, Callable[..., tuple[Any, Any]]] = {
    "cat": _cat,
    "convolution": _convolution,
    "addmm": _addmm,
    "gather": _gather,
    "abs": _abs,
    "angle": _angle,
    "sgn": _sgn,
    "softmax": _softmax,
    "logsumexp": _logsumexp,
}
#: What a row may say instead of a rule.
GENERAL = ("composite", "elementwise", "elementwise reals")
#: Rules by operator name.
RULES = {name: NAMED[rule] for name, rule in JVP.items() if rule not in GENERAL}


def written(operator: Any, primals: tuple[Any, ...], tangents: Sequence[Any]) -> Tensor | None:
    """Return the tangent after an in-place operator without a functional form, or None."""
    if operator.name == "copy_" and tangents[1] is not None:
        return tangents[1].to(primals[0].dtype).expand(primals[0].shape)
    return None
