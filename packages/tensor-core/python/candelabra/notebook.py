"""Tensors in notebooks: HTML with shape, dtype and device, and a table of the elements."""

from __future__ import annotations

from html import escape

from . import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

#: A table is at most of this many rows and columns; longer ones are shown by their edges.
LONGEST = 20
_CELL = "text-align:right;font-family:monospace;padding:0 .5em"


def tensor_html(tensor: Tensor) -> str:
    """Return the HTML that notebooks show for a tensor.

    A table for one and two dimensions, else the text that :func:`print` writes.

    Examples
    --------
    >>> import candelabra
    >>> "<table" in candelabra.ones(2, 2)._repr_html_()
    True
    """
    facts = [type(tensor).__name__, str(tuple(tensor.shape)), str(tensor.dtype), str(tensor.device)]
    facts += [suffix for suffix in printing.suffixes(tensor) if suffix.startswith(("grad_fn", "requires_grad"))]
    head = f"<div><small>{escape(' · '.join(facts))}</small>"
    if tensor.ndim not in (1, 2) or not tensor.numel() or not printing.has_elements(tensor):
        return f"{head}<pre>{escape(printing.contents_text(tensor, 0))}</pre></div>"
    summarize = max(tensor.shape) > LONGEST
    values, formatter = printing.shown_elements(tensor, summarize)
    rows = [values] if tensor.ndim == 1 else values
    width = next((len(row) for row in rows if row is not Ellipsis), 1)
    lines = "".join(f"<tr>{_cells(row, width, formatter)}</tr>" for row in rows)
    return f'{head}<table class="candelabra-tensor">{lines}</table></div>'


def _cells(row: Any, width: int, formatter: Any) -> str:
    cells = [Ellipsis] * width if row is Ellipsis else row
    texts = ("…" if cell is Ellipsis else escape(formatter.format(cell).strip()) for cell in cells)
    return "".join(f'<td style="{_CELL}">{text}</td>' for text in texts)
