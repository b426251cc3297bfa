"""Tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["table"]


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as text in columns.

    Examples
    --------
    >>> from candelabra.fx.printing import table
    >>> print(table(["name", "op"], [["x", "placeholder"]]))
    name    op
    ------  -----------
    x       placeholder
    """
    lines = [[str(cell) for cell in row] for row in rows]
    # Two more than the heading, as the library tabulate has them.
    widths = [max([len(header) + 2, *(len(line[column]) for line in lines)]) for column, header in enumerate(headers)]
    everything = [list(headers), ["-" * width for width in widths], *lines]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in everything
    )
