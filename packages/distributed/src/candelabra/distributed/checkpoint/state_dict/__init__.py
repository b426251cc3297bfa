"""The states of a model and its optimizers under the names of the parameters, whatever wraps the
model and however it is sharded.
"""

from __future__ import annotations

from .model_state import get_model_state_dict, set_model_state_dict
from .optimizer_state import get_optimizer_state_dict, set_optimizer_state_dict
from .options import StateDictOptions
from .together import get_state_dict, set_state_dict

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]
