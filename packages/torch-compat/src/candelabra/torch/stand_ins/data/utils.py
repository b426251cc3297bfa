"""``torch.utils.data._utils`` itself, whose modules are imported when they are asked for."""

from __future__ import annotations

import importlib.util

__all__ = ["HAS_NUMPY", "MP_STATUS_CHECK_INTERVAL"]

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
#: Seconds between two looks at whether the other processes live.
MP_STATUS_CHECK_INTERVAL = 5.0
