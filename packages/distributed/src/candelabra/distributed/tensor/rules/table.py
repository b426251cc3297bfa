"""The table of rules, and the notation of labels in which most of them are written.

A rule names each dimension of each argument and result by a label. Along one dimension of the mesh,
an operator can be computed on parts that are slices along one label, everywhere where it stands. A
result without the label is a pending reduction, if the rule says by which operation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import candelabra
from candelabra import ops

from ...device_mesh import DeviceMesh
from ..layout import Layout, meta
from ..placements import Partial, Placement, Replicate, Shard

_MISSING = object()
#: The labels of the dimensions of one tensor; None is a dimension that cannot be sliced.
Names = Sequence[Any]


@dataclass
class Call:
    """An operator's call, with layouts in place of tensors."""

    func: Any
    name: str
    arguments: dict[str, Any]
    layouts: list[Layout]
    mesh: DeviceMesh
    mesh_dim: int = 0

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, or a default that it was called without."""
        return self.arguments.get(name, default)

    def on_whole(self) -> Any:
        """Return the results of the operator on tensors without data, of the whole shapes."""
        # Devices are no part of the shape: `to` is given one among its first arguments, too.
        given = {
            key: _without_data(value)
            for key, value in self.arguments.items()
            if key != "device" and not (self.name == "to" and isinstance(value, (candelabra.device, str)))
        }
        return call_with(self.func, given)

    def placed(self, k: int) -> Placement:
        """Return where the k-th tensor is, along the dimension of the mesh."""
        return self.layouts[k].placements[self.mesh_dim]

    def parts_of(self, k: int, dim: int) -> int:
        """Return into how many slices a dimension of the k-th tensor is cut, or would be by
        this one.
        """
        count = 1
        for i, each in enumerate(self.layouts[k].placements):
            if each.is_shard(dim) or i == self.mesh_dim:
                count *= self.mesh.shape[i]
        return count

    def partials(self) -> list[Partial]:
        """Return the pending reductions of the tensors, along the dimension of the mesh."""
        found = [self.placed(k) for k in range(len(self.layouts))]
        return list(dict.fromkeys(each for each in found if isinstance(each, Partial)))


def call_with(func: Any, arguments: dict[str, Any]) -> Any:
    """Call an operator with arguments by name."""
    positional = func.parameters[: func.positional_count]
    given = list(
        itertools.takewhile(lambda value: value is not _MISSING, (arguments.get(key, _MISSING) for key in positional))
    )
    rest = {key: value for key, value in arguments.items() if key not in positional[: len(given)]}
    return func(*given, **rest)


def _without_data(value: Any) -> Any:
    if isinstance(value, Layout):
        return meta(value)
    if isinstance(value, list) and any(isinstance(each, Layout) for each in value):
        return [_without_data(each) for each in value]
    return value


@dataclass(frozen=True)
class Row:
    """One way to compute an operator, along one dimension of the mesh: where results and
    tensors are.
    """

    outputs: tuple[Placement, ...]
    inputs: tuple[Placement, ...]


@dataclass
class Labels:
    """The labels of an operator's tensors and results.

    Attributes
    ----------
    inputs, outputs
        The labels of each.
    reductions
        By label: how results without it are combined.
    added
        The tensors that are added to the result, and so must be pending sums as it is.
    linear
        Sets of tensors in which the operator is jointly linear: of pending sums it is a pending
        sum.
    keeps
        Whether any pending reduction of all tensors stays one.
    """

    inputs: Sequence[Names]
    outputs: Sequence[Names]
    reductions: dict[Any, str] = field(default_factory=dict)
    added: Sequence[int] = ()
    linear: Sequence[Sequence[int]] = ()
    keeps: bool = False

    def rows(self, call: Call) -> list[Row]:
        """Return all ways to compute the operator; the first has all values on all ranks."""
        everywhere = Row((Replicate(),) * len(self.outputs), (Replicate(),) * len(self.inputs))
        made = [everywhere]
        for label in dict.fromkeys(each for names in self.inputs for each in names if each is not None):
            outs = [self._output(label, names) for names in self.outputs]
            if all(each is not None for each in outs):
                ins = tuple(self._input(label, k, names) for k, names in enumerate(self.inputs))
                made.append(Row(tuple(outs), ins))  # type: ignore[arg-type]
        for partial in call.partials():
            made += self._partial(partial)
        return made

    def _output(self, label: Any, names: Names) -> Placement | None:
        if label in names:
            return Shard(list(names).index(label))
        return Partial(self.reductions[label]) if label in self.reductions else None

    def _input(self, label: Any, k: int, names: Names) -> Placement:
        if label in names:
            return Shard(list(names).index(label))
        return Partial(self.reductions[label]) if k in self.added and label in self.reductions else Replicate()

    def _partial(self, partial: Partial) -> Iterable[Row]:
        outs = (partial,) * len(self.outputs)
        if self.keeps:
            yield Row(outs, (partial,) * len(self.inputs))
        if type(partial) is Partial and partial.reduce_op in ("sum", "avg"):
            for members in self.linear:
                yield Row(outs, tuple(partial if k in members else Replicate() for k in range(len(self.inputs))))


@dataclass
class Rule:
    """How a class of operators computes on parts.

    Attributes
    ----------
    rows
        Returns the ways to compute a call.
    sizes
        Arguments that are replaced by the shape of the local part of a result, by its number.
    local
        Computes the local results, if it is not the operator itself on the parts. Called with the
        call, the chosen rows, the arguments by name and the results' layouts.
    whole
        Computes the call as it is, without rows.
    """

    rows: Callable[[Call], list[Row]]
    sizes: dict[str, int] = field(default_factory=dict)
    local: Callable[..., Any] | None = None
    whole: Callable[..., Any] | None = None


#: The rule of each operator. Those in place are found by the name of the operator that is not.
RULES: dict[str, Rule] = {}


def rule(
    names: str | Iterable[str],
    labels: Callable[[Call], Labels] | None = None,
    rows: Callable[[Call], list[Row]] | None = None,
    **options: Any,
) -> None:
    """Enter the rule of operators, given by their labels or by rows."""
    if rows is None:
        chosen = labels
        assert chosen is not None

        def rows_of(call: Call) -> list[Row]:
            return chosen(call).rows(call)

        rows = rows_of
    made = Rule(rows, **options)
    for name in names.split() if isinstance(names, str) else names:
        assert name not in RULES and hasattr(ops, name), name
        RULES[name] = made


def refuse(_call: Call) -> list[Row]:
    """Return no way to compute the call: of rules that compute it as a whole."""
    return []


def listed(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return dimensions as nonnegative numbers; None or none means all."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(ndim))
    return tuple(each % ndim if ndim else 0 for each in ((dim,) if isinstance(dim, int) else dim))


def without(labels: Names, dims: Iterable[int]) -> list[Any]:
    """Return labels with None for some dimensions."""
    skipped = set(dims)
    return [None if at in skipped else label for at, label in enumerate(labels)]


def numbered(layout: Layout, start: int = 0) -> list[Any]:
    """Return a label for each dimension of a tensor."""
    return [start + at for at in range(len(layout.shape))]
