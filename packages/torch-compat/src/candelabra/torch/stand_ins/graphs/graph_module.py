"""``torch.fx.graph_module``: private names."""

from __future__ import annotations

from candelabra.fx import attributes
from candelabra.fx.graph_module import USER_PRESERVED_ATTRIBUTES_KEY, CodeOnlyModule

__all__ = [
    "_CodeOnlyModule", "_USER_PRESERVED_ATTRIBUTES_KEY", "_assign_attr", "_copy_attr", "_del_attr", "_get_attr", "_has_attr",
]  # fmt: skip

_CodeOnlyModule, _USER_PRESERVED_ATTRIBUTES_KEY = CodeOnlyModule, USER_PRESERVED_ATTRIBUTES_KEY
_assign_attr, _copy_attr, _del_attr = attributes.assign, attributes.copy_attribute, attributes.delete
_get_attr, _has_attr = attributes.fetch, attributes.has
