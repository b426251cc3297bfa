"""Summaries of models: shapes, parameters and operations of each module."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from candelabra import Tensor, pytree

from .flop_counter import FlopCounterMode
from .trainer.model_calls import call_model
from .trainer.modes import evaluating
from .trainer.randomness import kept_generators

__all__ = ["ModuleRow", "Summary", "summary"]


@dataclass
class ModuleRow:
    """What a summary says of one module.

    Attributes
    ----------
    name : str
        The path in the model; the name of the model's class for the model itself.
    kind : str
        The name of the class.
    depth : int
        0 for the model itself.
    output : list
        The shapes of its result in the last call; None if it was not called.
    parameters, trainable : int
        Numbers of its parameters, those of its children included.
    flops : int
        The floating-point operations of all its calls.
    calls : int
        How often it was called.
    """

    name: str
    kind: str
    depth: int
    output: list[tuple[int, ...]] | None = None
    parameters: int = 0
    trainable: int = 0
    flops: int = 0
    calls: int = 0


@dataclass
class Summary:
    """A table of the modules of a model, which prints itself.

    Attributes
    ----------
    rows : list of ModuleRow
        The model, then its modules in the order of their definition, to the depth asked for.
    parameters, trainable : int
        Numbers of parameters; one that modules share counts once.
    parameter_bytes, buffer_bytes, output_bytes : int
        Memory of the parameters, of the buffers, and of what the modules without children returned.
    flops : int
        Floating-point operations of one forward pass.
    """

    rows: list[ModuleRow] = field(default_factory=list)
    parameters: int = 0
    trainable: int = 0
    parameter_bytes: int = 0
    buffer_bytes: int = 0
    output_bytes: int = 0
    flops: int = 0
    was_called: bool = False

    def _cells(self) -> list[tuple[str, str, str, str]]:
        cells = [("module", "output", "parameters", "FLOPs")]
        for row in self.rows:
            shapes = "-" if row.output is None else ", ".join(map(str, row.output))
            title = row.kind if not row.depth else f"{'  ' * row.depth}{row.name.rpartition('.')[2]}: {row.kind}"
            flops = f"{row.flops:,}" if row.flops else "-"
            cells.append((title, shapes, f"{row.parameters:,}" if row.parameters else "-", flops))
        return cells

    def _totals(self) -> list[str]:
        frozen = f", {self.parameters - self.trainable:,} of them frozen" if self.trainable != self.parameters else ""
        lines = [f"{self.parameters:,} parameters{frozen}, {_size(self.parameter_bytes + self.buffer_bytes)}"]
        if self.was_called:
            lines.append(f"{self.flops:,} FLOPs, {_size(self.output_bytes)} of outputs in a forward pass")
        return lines

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[column]) for row in cells) for column in range(4)]
        lines = [
            f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}".rstrip()
            for row in cells
        ]
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._totals()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>"
            + "".join(f'<td style="text-align:left;white-space:pre">{escape(cell)}</td>' for cell in row)
            + "</tr>"
            for row in rows
        )
        totals = "<br>".join(map(escape, self._totals()))
        return f'<table class="candelabra-summary"><tr>{top}</tr>{body}</table><div>{totals}</div>'


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


class _Calls:
    """Hooks that note the shapes of what modules return, and how often they are called."""

    def __init__(self, rows: dict[int, ModuleRow], found: Summary) -> None:
        self._rows, self._found = rows, found

    def note(self, module: Any, args: Any, output: Any) -> None:
        tensors = [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, Tensor)]
        row = self._rows[id(module)]
        row.output = [tuple(tensor.shape) for tensor in tensors]
        row.calls += 1
        if not any(True for _ in module.children()):
            self._found.output_bytes += sum(tensor.nbytes for tensor in tensors)


def summary(model: Any, input: Any = None, *, depth: int = 3) -> Summary:
    """Return a table of a model's modules: shapes of outputs, parameters, operations.

    The model is called once, in evaluation mode and without gradients. Its buffers and the
    generators of random numbers are the same afterwards.

    Parameters
    ----------
    model : Module
        The model.
    input : optional
        Its input: a tensor, a list or tuple of positional arguments, or a dict of keyword
        arguments. Without it, the model is not called, and there are only parameters.
    depth : int
        How deep modules are shown.

    Returns
    -------
    Summary
        Prints itself as a table, also in notebooks.

    Raises
    ------
    TypeError
        If `model` has no modules.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> candelabra.summary(model, candelabra.ones(16, 4))
    module       output   parameters  FLOPs
    ---------------------------------------
    Sequential   (16, 2)          58  1,536
      0: Linear  (16, 8)          40  1,024
      1: ReLU    (16, 8)           -      -
      2: Linear  (16, 2)          18    512
    ---------------------------------------
    58 parameters, 232 B
    1,536 FLOPs, 1.2 kB of outputs in a forward pass
    """
    if not hasattr(model, "named_modules"):
        raise TypeError(f"summary(): model has to be a Module, but got {type(model).__name__}")
    found, rows = Summary(), {}
    for name, module in model.named_modules():
        own = list(module.parameters())
        kind, level = type(module).__name__, name.count(".") + 1 if name else 0
        row = ModuleRow(name or kind, kind, level, parameters=_count(own))
        row.trainable = _count([parameter for parameter in own if parameter.requires_grad])
        rows[id(module)] = row
        if level <= depth:
            found.rows.append(row)
    if input is not None:
        _call(model, input, rows, found)
    # Lazy parameters have sizes after a call only.
    for module in model.modules():
        rows[id(module)].parameters = _count(list(module.parameters()))
    parameters = list(model.parameters())
    found.parameters = _count(parameters)
    found.trainable = _count([parameter for parameter in parameters if parameter.requires_grad])
    found.parameter_bytes = sum(parameter.nbytes for parameter in parameters if _has_size(parameter))
    found.buffer_bytes = sum(buffer.nbytes for buffer in model.buffers() if _has_size(buffer))
    return found


def _call(model: Any, input: Any, rows: dict[int, ModuleRow], found: Summary) -> None:
    names = dict(model.named_modules(prefix=type(model).__name__))
    calls = _Calls(rows, found)
    handles = [module.register_forward_hook(calls.note) for module in model.modules()]
    counter = FlopCounterMode(display=False)
    try:
        with evaluating(model), kept_generators(), counter:
            call_model(model, input)
    finally:
        for handle in handles:
            handle.remove()
    for name, counts in counter.flop_counts.items():
        if name in names:
            rows[id(names[name])].flops = sum(counts.values())
    found.flops = counter.get_total_flops()
    found.was_called = True


def _has_size(tensor: Any) -> bool:
    return not hasattr(tensor, "materialize")


def _count(parameters: list[Any]) -> int:
    return sum(int(parameter.numel()) for parameter in parameters if _has_size(parameter))
