"""``torch.fx.graph``: private names."""

from __future__ import annotations

import candelabra.fx as _fx  # noqa: F401
from candelabra.fx.codegen import INPLACE_METHODS, MAGIC_METHODS, PyTreeCodeGen, PyTreeInfo, format_target
from candelabra.fx.graph import NodeList
from candelabra.fx.naming import Namespace, is_ours, snake_case

__all__ = [
    "_Namespace", "_PyTreeCodeGen", "_PyTreeInfo", "_format_target", "_is_from_torch", "_node_list", "_snake_case", "inplace_methods",
    "magic_methods",
]  # fmt: skip

_Namespace, _PyTreeCodeGen, _PyTreeInfo, _node_list = Namespace, PyTreeCodeGen, PyTreeInfo, NodeList
_format_target, _is_from_torch, _snake_case = format_target, is_ours, snake_case
inplace_methods, magic_methods = INPLACE_METHODS, MAGIC_METHODS
