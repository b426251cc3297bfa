"""``torch.nn.modules.module``: the hooks of all modules, by PyTorch's names."""

from __future__ import annotations

import candelabra.nn as _nn  # noqa: F401
from candelabra.nn.modules.base.hooks import global_registration

__all__ = [
    "_global_buffer_registration_hooks", "_global_module_registration_hooks", "_global_parameter_registration_hooks",
]  # fmt: skip

_global_buffer_registration_hooks = global_registration["buffer"]
_global_module_registration_hooks = global_registration["module"]
_global_parameter_registration_hooks = global_registration["parameter"]
