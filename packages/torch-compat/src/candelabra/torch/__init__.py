"""Runs PyTorch code on Candelabra, as it is: ``import torch`` answers with Candelabra.

From the command line, ``python -m candelabra.torch script.py [arguments]``; in a program, before
anything imports torch::

    import candelabra.torch

    candelabra.torch.install()
    import torch

The names under ``torch`` are Candelabra's own objects: ``torch.Tensor is candelabra.Tensor``. What
Candelabra does not have raises an error that names it.
"""

from __future__ import annotations

from .finder import install, is_installed, uninstall

__version__ = "0.1.0"
__all__ = ["install", "is_installed", "uninstall"]
