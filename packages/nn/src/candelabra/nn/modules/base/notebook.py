"""Modules in notebooks: a tree whose branches open and close."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..module import Module

#: Branches from this depth on are closed at first.
_CLOSED = 2
_INDENT = 'style="margin-left:1.2em"'


def module_html(module: Module) -> str:
    """Return the HTML that notebooks show for a module.

    Examples
    --------
    >>> from candelabra import nn
    >>> "Linear(in_features=2, out_features=3, bias=True)" in nn.Sequential(nn.Linear(2, 3))._repr_html_()
    True
    """
    return f'<div class="candelabra-module" style="font-family:monospace">{_branch(module, "", 0)}</div>'


def _branch(module: Module, name: str, depth: int) -> str:
    count = sum(
        int(parameter.numel()) for parameter in module.parameters() if not hasattr(parameter, "materialize")
    )  # lazy ones have no size yet
    title = f"({name}): " if name else ""
    extra = " ".join(module.extra_repr().split("\n"))
    head = f"{escape(title)}{escape(module._get_name())}({escape(extra)})"
    if count:
        head += f" <small>{count:,} parameters</small>"
    children = [child for child in module._modules.items() if child[1] is not None]
    if not children:
        return f"<div {_INDENT}>{head}</div>" if depth else f"<div>{head}</div>"
    parts = "".join(_branch(child, child_name, depth + 1) for child_name, child in children if child is not None)
    opened = " open" if depth < _CLOSED else ""
    return f"<details{opened} {_INDENT if depth else ''}><summary>{head}</summary>{parts}</details>"
