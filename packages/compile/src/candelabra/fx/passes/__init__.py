"""Passes: functions and classes that look at graphs or change them."""

from __future__ import annotations

from . import infra, shape_prop, split_module, tools_common, utils

__all__ = ["infra", "shape_prop", "split_module", "tools_common", "utils"]
