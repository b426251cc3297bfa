"""Where shared memory comes from: anonymous files behind descriptors, or names in a file system."""

from __future__ import annotations

import sys

FILE_DESCRIPTOR = "file_descriptor"
FILE_SYSTEM = "file_system"
_all = frozenset({FILE_DESCRIPTOR, FILE_SYSTEM}) if sys.platform == "linux" else frozenset({FILE_SYSTEM})
_current = FILE_DESCRIPTOR if FILE_DESCRIPTOR in _all else FILE_SYSTEM


def get_all_sharing_strategies() -> set[str]:
    """Return the names of the strategies that this system has.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> sorted(mp.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return set(_all)


def get_sharing_strategy() -> str:
    """Return the name of the strategy by which memory is shared from now on.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> mp.get_sharing_strategy()
    'file_descriptor'
    """
    return _current


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is shared from now on in this process; what is shared already stays as it
    is.

    Parameters
    ----------
    new_strategy : str
        ``"file_descriptor"``: each storage is an anonymous file, and costs a descriptor in each
        process that has it. Nothing is ever left behind. ``"file_system"``: each storage is a file
        below ``/dev/shm``, which costs no descriptor.

    Raises
    ------
    ValueError
        Where there is no such strategy.

    Examples
    --------
    >>> import candelabra.multiprocessing as mp
    >>> mp.set_sharing_strategy("file_descriptor")
    """
    global _current
    if new_strategy not in _all:
        raise ValueError(f"sharing strategy must be one of {sorted(_all)}, but got {new_strategy!r}")
    _current = new_strategy
