"""``torch._tensor_str``: the texts of tensors and of subclasses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from candelabra import Tensor, printing
from candelabra.printing import options as PRINT_OPTS

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str_intern", "_tensor_str", "printoptions"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """Return the text of the elements, whose further lines are indented."""
    return printing.contents_text(self, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Return the text of a tensor with what is said after its elements, and the closing bracket."""
    pieces = [tensor_str]
    used = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or used + len(suffix) + 2 > PRINT_OPTS.linewidth:
            pieces.append(",\n" + " " * indent + suffix)
            used, force_newline = indent + len(suffix), False
        else:
            pieces.append(", " + suffix)
            used += len(suffix) + 2
    return "".join(pieces) + ")"


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return the text of a tensor, with other contents if they are given."""
    return printing.tensor_text(inp, tensor_contents)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Set options of printing within the block; see ``set_printoptions``."""
    before = {
        name: getattr(PRINT_OPTS, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    }
    printing.set_printoptions(**kwargs)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(PRINT_OPTS, name, value)
