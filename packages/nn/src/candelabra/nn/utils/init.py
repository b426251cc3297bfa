"""Create modules without initializing their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from .. import init
from ..modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Create a module with uninitialized parameters.

    Use it if the parameters are overwritten afterwards.

    Parameters
    ----------
    module_cls
        Module class with a `device` argument that initializes its parameters with `nn.init`.
    *args, **kwargs
        Arguments of the constructor.

    Raises
    ------
    RuntimeError
        If the class is not a module or has no `device` argument.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.utils.skip_init(nn.Linear, 5, 1).weight.shape
    candelabra.Size([1, 5])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)


__all__ = ["skip_init"]
