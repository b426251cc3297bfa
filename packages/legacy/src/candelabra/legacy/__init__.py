"""Torch 7's style of layers and optimizers, and its files, for those who port old programs."""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register(
    "candelabra-legacy",
    __version__,
    "candelabra-tensor-core>=0.1,<0.2",
    "candelabra-autograd>=0.1,<0.2",
    "candelabra-nn>=0.1,<0.2",
)

from . import nn, optim
from .t7 import T7ReaderException, Torch7Object, load_lua, save_lua

__all__ = ["T7ReaderException", "Torch7Object", "load_lua", "nn", "optim", "save_lua"]
