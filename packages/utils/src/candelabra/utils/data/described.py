"""Texts of datasets and samplers in the representations of what holds them."""

from __future__ import annotations

from typing import Any


def described(source: Any) -> str:
    """Return the representation of a dataset or sampler of ours, else the type and the length.

    Examples
    --------
    >>> from candelabra.utils.data.described import described
    >>> described([1, 2])
    'list of 2'
    """
    if getattr(source, "_describes_itself", False):
        return repr(source)
    return f"{type(source).__name__} of {len(source)}" if hasattr(source, "__len__") else type(source).__name__
