"""Automatic differentiation: the tape, the backward engine and the derivative formulas.

The core imports this package the first time a tensor requires grad. The import gives every operator
its autograd function. It also adds ``backward``, ``register_hook``, ``retain_grad`` and similar
methods to tensors.
"""

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-autograd", __version__, "candelabra-tensor-core>=0.1,<0.2")

import importlib

from candelabra import _C, Tensor

from . import derivatives, graph, hooks, inplace, recording
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .function import Function
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .node import Node
from .variable import Variable
from .walks import backward, backward_of_tensor, grad

__all__ = [
    "Function", "GradcheckError", "Node", "Variable", "backward", "checkpoint", "derivatives", "detect_anomaly", "enable_grad", "forward_ad", "func", "functional", "grad", "gradcheck",
    "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_grad_enabled",
    "is_inference_mode_enabled", "is_multithreading_enabled", "no_grad", "profiler", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import rarely used submodules on first access."""
    if name in ("checkpoint", "forward_ad", "func", "functional", "profiler"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _name, _method in (
    ("backward", backward_of_tensor),
    ("register_hook", hooks.register_hook),
    ("register_post_accumulate_grad_hook", hooks.register_post_accumulate_grad_hook),
    ("retain_grad", hooks.retain_grad),
):
    setattr(Tensor, _name, _C.OverridableFunction(_method))
recording.install()
inplace.install()
