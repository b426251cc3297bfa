"""Sharing strategies: anonymous files with descriptors, or named files in a file system."""

from __future__ import annotations

import sys

FILE_DESCRIPTOR = "file_descriptor"
FILE_SYSTEM = "file_system"
_all = frozenset({FILE_DESCRIPTOR, FILE_SYSTEM}) if sys.platform == "linux" else frozenset({FILE_SYSTEM})
_current = FILE_DESCRIPTOR if FILE_DESCRIPTOR in _all else FILE_SYSTEM


def get_all_sharing_strategies() -> set[str]:
    """Return the names of the strategies that this system supports.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> sorted(mp.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return set(_all)


def get_sharing_strategy() -> str:
    """Return the name of the current sharing strategy.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> mp.get_sharing_strategy()
    'file_descriptor'
    """
    return _current


def set_sharing_strategy(new_strategy: str) -> None:
    """Set the sharing strategy for later shares of this process.

    Parameters
    ----------
    new_strategy : str
        ``"file_descriptor"``: each storage is an anonymous file and needs one descriptor in each
        process. Nothing is left behind after a crash. ``"file_system"``: each storage is a file in
        ``/dev/shm`` and needs no descriptor.

    Raises
    ------
    ValueError
        If the strategy is unknown.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> mp.set_sharing_strategy("file_descriptor")
    """
    global _current
    if new_strategy not in _all:
        raise ValueError(f"sharing strategy must be one of {sorted(_all)}, but got {new_strategy!r}")
    _current = new_strategy
