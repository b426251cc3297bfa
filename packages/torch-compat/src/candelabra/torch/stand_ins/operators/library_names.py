"""``torch.library``: a private name that tests of libraries use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from candelabra.library import Library

__all__ = ["_scoped_library"]


@contextlib.contextmanager
def _scoped_library(*arguments: Any, **options: Any) -> Iterator[Library]:
    """Make a library within the block, and take back afterwards what it defined."""
    library = Library(*arguments, **options)
    try:
        yield library
    finally:
        library._destroy()
