"""Stand-ins for names of PyTorch without a Candelabra module, one file per PyTorch module.

Unavailable features report that they are unavailable. Settings without a meaning here do nothing,
and unsupported calls raise.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Stand-in files by PyTorch module, without the prefix ``torch.``. The ``__all__`` of a file lists
#: the added names.
FILES = {
    "": "package",
    "__config__": "configuration",
    "__future__": "future_behavior",
    "_C": "dispatch_keys",
    "_custom_ops": "custom_ops",
    "_dynamo": "compiler",
    "backends": "backends.package",
    "backends.cpu": "backends.cpu",
    "backends.mkl": "backends.library",
    "backends.mkldnn": "backends.library",
    "backends.mps": "backends.absent",
    "backends.openmp": "backends.library",
    "backends.opt_einsum": "backends.opt_einsum",
    "compiler": "compiler",
    "cpu.amp": "cpu_amp",
    "distributed": "distributed",
    "distributions.utils": "distribution_utils",
    "futures": "futures",
    "jit": "jit",
    "mps": "absent_device",
    "nn.modules.utils": "tuples",
    "nn.parallel": "parallel",
    "onnx": "onnx",
    "profiler": "profiler_names",
    "serialization": "files",
    "utils.bundled_inputs": "bundled_inputs",
    "utils.deterministic": "deterministic",
    "utils.flop_counter": "flop_counter",
    "utils.serialization": "serialization_package",
    "utils.serialization.config": "serialization_config",
    "version": "version",
    "xpu": "absent_device",
}


def names(module: str) -> dict[str, Any] | None:
    """Return the names that are added to a PyTorch module, or None."""
    if module not in FILES:
        return None
    file = importlib.import_module(f"{__name__}.{FILES[module]}")
    return {name: getattr(file, name) for name in file.__all__}
