"""Runs unmodified PyTorch code on Candelabra: ``import torch`` imports Candelabra.

Use ``python -m candelabra.torch script.py [arguments]`` on the command line. In a program, before
anything imports torch::

    import candelabra.torch

    candelabra.torch.install()
    import torch

The names under ``torch`` are Candelabra's own objects: ``torch.Tensor is candelabra.Tensor``.
Access to anything that Candelabra does not have raises an error with its name.
"""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-torch-compat", __version__, "candelabra-tensor-core>=0.1,<0.2")

from .finder import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
