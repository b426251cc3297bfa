"""``torch.nn.parameter``: the class of the class of parameters."""

from __future__ import annotations

import candelabra.nn as _nn  # noqa: F401
from candelabra.nn.parameter import Parameter

__all__ = ["_ParameterMeta"]

_ParameterMeta = type(Parameter)
