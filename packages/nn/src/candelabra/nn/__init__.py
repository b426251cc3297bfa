"""Layers, losses, containers and initialization, as in ``torch.nn``."""

__version__ = "0.1.0"

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules.hooks import RemovableHandle as RemovableHandle
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils", *modules.__all__]
