"""What stands in for names of PyTorch that Candelabra has no module for: a file for each of
PyTorch's modules.

Each says what is true here: what is not available says so, what has no meaning does nothing, and
what cannot be done raises.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Modules of PyTorch, without ``torch.`` in front, and the file here with their names. A file's
#: ``__all__`` is what is added.
FILES = {
    "": "package",
    "__config__": "configuration",
    "_dynamo": "compiler",
    "backends": "backends.package",
    "backends.cpu": "backends.cpu",
    "backends.mkl": "backends.library",
    "backends.mkldnn": "backends.library",
    "backends.mps": "backends.absent",
    "backends.openmp": "backends.library",
    "backends.opt_einsum": "backends.opt_einsum",
    "compiler": "compiler",
    "distributed": "distributed",
    "jit": "jit",
    "mps": "absent_device",
    "nn.modules.utils": "tuples",
    "nn.parallel": "parallel",
    "onnx": "onnx",
    "serialization": "files",
    "version": "version",
    "xpu": "absent_device",
}


def names(module: str) -> dict[str, Any] | None:
    """What is added to a module of PyTorch's; None if nothing is."""
    if module not in FILES:
        return None
    file = importlib.import_module(f"{__name__}.{FILES[module]}")
    return {name: getattr(file, name) for name in file.__all__}
