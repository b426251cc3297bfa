"""Computes operators on the parts of distributed tensors, by the rules of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from candelabra import Tensor

from ..device_mesh import DeviceMesh
from .dtensor import DTensor
from .layout import Layout, Placements, compute_local_shape_and_global_offset
from .placements import Placement, Replicate, Shard
from .redistribution import redistribute
from .rules import RULES, Call, Row, Rule, call_with

_MOST_PLANS = 4096
_plans: dict[Any, Any] = {}
_replicates = ContextVar("implicit_replication", default=False)
#: Functions of the arguments by name that compute operators instead of their rules.
_overrides: ContextVar[Mapping[str, Callable[[dict[str, Any]], Any]]] = ContextVar(
    "overrides", default=MappingProxyType({})
)


@contextmanager
def implicit_replication() -> Any:
    """Take plain tensors among the arguments of operators as replicated, in the block."""
    token = _replicates.set(True)
    try:
        yield
    finally:
        _replicates.reset(token)


@contextmanager
def overriding(functions: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Iterator[None]:
    """Compute some operators by other functions than their rules, in the block."""
    token = _overrides.set(functions)
    try:
        yield
    finally:
        _overrides.reset(token)


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute an operator some of whose arguments are DTensors.

    Raises
    ------
    NotImplementedError
        There is no rule for it.
    RuntimeError
        Tensors are of different meshes, or plain tensors are among them.
    """
    name = func.functional.name if func.functional is not None else func.name
    override = _overrides.get().get(name)
    if override is not None:
        return override(dict(zip(func.parameters, args, strict=False)) | kwargs)
    rule = RULES.get(name) or RULES.get(func.name)
    if rule is None:
        raise NotImplementedError(
            f"the operator {func.name} has no rule for DTensor. Compute it on local tensors: x.to_local(), or "
            "x.full_tensor() for the whole one, then DTensor.from_local; or redistribute and wrap a module by "
            "distribute_module or PrepareModuleInput"
        )
    if rule.whole is not None:
        return rule.whole(func, args, kwargs)
    if "out" in kwargs:
        raise NotImplementedError(f"{func.name}: out= is not supported for DTensor: copy_ the result instead")
    tensors: list[DTensor] = []
    mesh = _mesh_of(args, kwargs)
    names = dict(zip(func.parameters, args, strict=False)) | kwargs
    bound = {key: _described(value, tensors, mesh, func) for key, value in names.items()}
    call = Call(func, name, bound, [each._layout for each in tensors], mesh)
    is_inplace = func.functional is not None or func.name.endswith("_")
    if is_inplace and tensors[0]._copied_by is not None:
        raise RuntimeError(
            f"{func.name}: this DTensor was made by {tensors[0]._copied_by} along a sharded dimension, so that it is a "
            "copy, and the tensor that it was made of would keep its values. Redistribute that one to Replicate() "
            "before it is viewed, or write to x.to_local()"
        )
    plan = _planned(rule, call, is_inplace)
    if plan is None:
        return _by_copy(func, tensors[0], names)
    rows, ins, outs = plan
    locals_ = [
        redistribute(each._local_tensor, each.shape, mesh, each.placements, want)
        for each, want in zip(tensors, ins, strict=True)
    ]
    result = _run(func, rule, call, rows, outs, locals_, names)
    if is_inplace:
        return tensors[0]
    made = _wrapped(result, outs)
    moved = locals_[0] is not tensors[0]._local_tensor
    if (moved or tensors[0]._copied_by is not None) and _is_view(func):
        for each in made if isinstance(made, tuple) else (made,):
            each._copied_by = tensors[0]._copied_by or func.name
    return made


def _is_view(func: Any) -> bool:
    # The schema says it, and so the same on every rank; memory does not where parts are empty.
    return "(a)" in func.schema.rpartition("->")[2]


def _by_copy(func: Any, own: DTensor, arguments: dict[str, Any]) -> DTensor:
    """Compute an operator in place whose result is elsewhere than its first argument, and move
    it.
    """
    if func.functional is None and func.name != "copy_":
        raise RuntimeError(f"{func.name}: the values of a DTensor with {own.placements} cannot be replaced")
    made = arguments["src"] if func.name == "copy_" else call_with(func.functional, arguments)
    if made.shape != own.shape:
        made = made.expand(own.shape)
    local = redistribute(made._local_tensor, made.shape, own.device_mesh, made.placements, own.placements)
    own._local_tensor.copy_(local)
    return own


def _mesh_of(args: Any, kwargs: Any) -> DeviceMesh:
    """Return the one mesh of the arguments."""
    found: DeviceMesh | None = None
    for value in (*args, *kwargs.values()):
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, DTensor):
                if found is not None and each.device_mesh != found:
                    raise RuntimeError(
                        f"all DTensors of an operator must be of one mesh, but got {found} and {each.device_mesh}"
                    )
                found = each.device_mesh
    assert found is not None
    return found


def _described(value: Any, tensors: list[DTensor], mesh: DeviceMesh, func: Any) -> Any:
    """Return an argument with layouts in place of tensors, which are added to a list."""
    if isinstance(value, Tensor):
        if not isinstance(value, DTensor):
            value = _replicated(value, mesh, func)
        tensors.append(value)
        return value._layout
    if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
        return [_described(each, tensors, mesh, func) for each in value]
    return value


def _replicated(value: Tensor, mesh: DeviceMesh, func: Any) -> DTensor:
    if value.numel() != 1 and not _replicates.get():
        raise RuntimeError(
            f"{func.name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
            "distributed operators! Use DTensor.from_local or distribute_tensor, or the context "
            "candelabra.distributed.tensor.experimental.implicit_replication"
        )
    layout = Layout(mesh, (Replicate(),) * mesh.ndim, tuple(value.shape), tuple(value.stride()), value.dtype)
    return DTensor(value.detach(), layout)


Plan = tuple[list[Row], list[Placements], "list[Layout | None]"]


def _planned(rule: Rule, call: Call, is_inplace: bool) -> Plan | None:
    """Return the rows of a call, and where its tensors and results are; None if it needs a copy.

    Plans are kept: they follow from the layouts and the other arguments.
    """
    # A mesh equal to an earlier one may have other groups; one in the table is not freed.
    key = call.func, id(call.mesh), tuple((name, _hashable(value)) for name, value in call.arguments.items())
    try:
        if key in _plans:
            return _plans[key]
    except TypeError:  # an argument without a hash
        return _new_plan(rule, call, is_inplace)
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    made = _plans[key] = _new_plan(rule, call, is_inplace)
    return made


def _hashable(value: Any) -> Any:
    if isinstance(value, Layout):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(each) for each in value)
    return value.__class__, value  # 1, 1.0 and True are different arguments


def _new_plan(rule: Rule, call: Call, is_inplace: bool) -> Plan | None:
    fixed = call.layouts[0].placements if is_inplace else None
    rows = [_best(rule, call, mesh_dim, fixed) for mesh_dim in range(call.mesh.ndim)]
    ins = [tuple(row.inputs[k] for row in rows) for k in range(len(call.layouts))]
    if is_inplace and ins[0] != fixed:
        return None
    return rows, ins, _output_layouts(call, rows, is_inplace)


def _best(rule: Rule, call: Call, mesh_dim: int, fixed: Placements | None) -> Row:
    """Return the row of a rule that moves the least data, for one dimension of the mesh."""
    call.mesh_dim = mesh_dim
    rows = rule.rows(call)
    if fixed is not None:
        kept = [row for row in rows if row.outputs[0] == fixed[mesh_dim] == row.inputs[0]]
        rows = kept or rows
    costs = [
        sum(
            _cost(layout.placements[mesh_dim], want, layout)
            for layout, want in zip(call.layouts, row.inputs, strict=True)
        )
        for row in rows
    ]
    return rows[costs.index(min(costs))]


def _cost(now: Placement, want: Placement, layout: Layout) -> float:
    """Return about how much data a change of placement moves, relative to other changes."""
    if now == want:
        return 0.0
    size = 1.0
    for each in layout.shape:
        size *= each
    size += 1
    if isinstance(now, Replicate):
        return 0.01 * size if isinstance(want, Shard) else 0.02 * size
    if isinstance(now, Shard):
        return size * (0.5 if isinstance(want, Shard) else 1.0 if isinstance(want, Replicate) else 4.0)
    return size * (1.0 if isinstance(want, Shard) else 2.0 if isinstance(want, Replicate) else 5.0)


def _output_layouts(call: Call, rows: Sequence[Row], is_inplace: bool) -> list[Layout | None]:
    """Return the layouts of the results; their shapes are those of the operator without data."""
    if is_inplace:
        return [call.layouts[0]]
    whole = call.on_whole()
    made = whole if isinstance(whole, (tuple, list)) else (whole,)
    outs: list[Layout | None] = []
    for k, each in enumerate(made):
        at = min(k, len(rows[0].outputs) - 1)  # an operator that returns a list has one row for all
        places = tuple(row.outputs[at] for row in rows)
        outs.append(Layout(call.mesh, places, tuple(each.shape), tuple(each.stride()), each.dtype))
    return outs


def _run(func: Any, rule: Rule, call: Call, rows: Any, outs: Any, locals_: list[Tensor], names: Any) -> Any:
    """Call the operator on local tensors."""
    queue = list(locals_)
    arguments = {key: _localized(value, queue) for key, value in names.items()}
    for key, output in rule.sizes.items():
        if key in arguments:
            layout = outs[output]
            arguments[key] = list(compute_local_shape_and_global_offset(layout.shape, call.mesh, layout.placements)[0])
    if rule.local is not None:
        return rule.local(call, rows, arguments, outs)
    return call_with(func, arguments)


def _localized(value: Any, queue: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return queue.pop(0)
    if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
        return [_localized(each, queue) for each in value]
    return value


def _wrapped(result: Any, outs: list[Layout | None]) -> Any:
    if isinstance(result, Tensor):
        return DTensor(result, outs[0])  # type: ignore[arg-type]
    made = [DTensor(each, layout) for each, layout in zip(result, outs, strict=True)]  # type: ignore[arg-type]
    return tuple(made)


DTensor._compute = staticmethod(dispatch)
