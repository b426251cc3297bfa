"""``torch.fx.node``: private names."""

from __future__ import annotations

import candelabra.fx as _fx  # noqa: F401
from candelabra.fx.naming import qualified_name, type_text
from candelabra.fx.node import LEGAL_OPS

__all__ = ["_get_qualified_name", "_legal_ops", "_type_repr"]

_get_qualified_name, _type_repr, _legal_ops = qualified_name, type_text, LEGAL_OPS
