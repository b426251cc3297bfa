"""Optimizers and learning-rate schedules, as in ``torch.optim``."""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-optim", __version__, "candelabra-tensor-core>=0.1,<0.2")

from typing import Any

from . import _functional as _functional
from . import lr_scheduler
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam
from .swapping import swap_in_optimizer_params_and_state


def __getattr__(name: str) -> Any:
    if name == "swa_utils":  # imported lazily: only swa_utils needs candelabra.nn
        from importlib import import_module

        return import_module(".swa_utils", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swap_in_optimizer_params_and_state",
]
