"""``torch._vmap_internals``: vmap as autograd calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import autograd  # noqa: F401  (a package is imported before its modules)
from candelabra.autograd.transforms.vmap import vmap

__all__ = ["_vmap", "vmap"]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Return a function that maps another over a dimension.

    Raises
    ------
    NotImplementedError
        If results that are None are to be passed through.
    """
    if allow_none_pass_through:
        raise NotImplementedError("_vmap(allow_none_pass_through=True) is not supported: return tensors only")
    return vmap(func, in_dims, out_dims)
