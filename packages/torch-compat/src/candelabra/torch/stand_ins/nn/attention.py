"""``torch.nn.attention``: implementations of attention that other packages register."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl", "current_flash_attention_impl", "list_flash_attention_impls",
    "register_flash_attention_impl", "restore_flash_attention_impl",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False
_implementations: dict[str, Callable[..., Any]] = {}
_active: tuple[str, Any] | None = None
_log = logging.getLogger("torch.nn.attention")


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Register an implementation.

    Parameters
    ----------
    impl
        Its name.
    register_fn
        Called when it is activated; puts it in place of the operator, and returns a handle with
        `remove`, or None.
    """
    _implementations[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """Return the names of the registered implementations."""
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """Return the name of the activated implementation, or None."""
    return None if _active is None else _active[0]


def activate_flash_attention_impl(impl: str) -> None:
    """Activate a registered implementation.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    global _active
    restore_flash_attention_impl(_raise_warn=False)
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    handle = _implementations[impl]()
    if handle is not None:
        _active = impl, handle


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Remove the activated implementation."""
    global _active
    if _active is not None:
        _active[1].remove()
    elif _raise_warn:
        _log.warning("Trying to restore default FA2 impl when no custom impl was activated")
    _active = None
