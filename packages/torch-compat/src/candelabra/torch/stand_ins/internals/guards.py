"""``torch._guards`` and ``torch.fx.experimental.proxy_tensor``: the modes that are active."""

from __future__ import annotations

from typing import Any

from candelabra import _C, pytree
from candelabra.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["active_fake_mode", "detect_fake_mode", "get_proxy_mode"]


def active_fake_mode() -> FakeTensorMode | None:
    """Return the innermost mode of fake tensors that is active, or None."""
    active = [mode for mode in _C.torch_dispatch_modes() if isinstance(mode, FakeTensorMode)]
    return active[-1] if active else None


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """Return the mode that is active, else that of the first fake tensor of the inputs, or None."""
    active = active_fake_mode()
    if active is not None:
        return active
    leaves = pytree.tree_leaves(inputs)
    return next((leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)), None)


def get_proxy_mode() -> None:
    """Return None: graphs are traced with proxies of ``torch.fx``, and no mode records
    operators.
    """
