"""How much is checked: the variable TORCH_DISTRIBUTED_DEBUG."""

from __future__ import annotations

import enum
import os


class DebugLevel(enum.Enum):
    """How much is checked. At DETAIL, ranks compare each collective before any data moves."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def _from_env() -> DebugLevel:
    text = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    try:
        return DebugLevel[text or "OFF"]
    except KeyError:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be one of OFF, INFO, and DETAIL, but is {text!r}"
        ) from None


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """Return how much is checked.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.get_debug_level()
    <DebugLevel.OFF: 0>
    """
    return _from_env() if _level is None else _level


def set_debug_level(level: DebugLevel) -> None:
    """Set how much is checked by process groups that are made later."""
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Set it by TORCH_DISTRIBUTED_DEBUG."""
    global _level
    _level = _from_env()
