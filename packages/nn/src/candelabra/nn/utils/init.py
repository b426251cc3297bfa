"""Modules made without filling their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from .. import init
from ..modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a module whose parameters hold anything: for those that are filled afterwards anyway.

    Parameters
    ----------
    module_cls
        A module with a `device` argument, which fills its parameters by the functions of `nn.init`.
    *args, **kwargs
        What it is made with.

    Raises
    ------
    RuntimeError
        When the class is no module or takes no device.

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
