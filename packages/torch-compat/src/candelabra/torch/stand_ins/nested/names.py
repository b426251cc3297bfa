"""``torch.nested._internal.nested_tensor``: what is known of nested tensors; there are none."""

from __future__ import annotations

import weakref
from typing import Any

from candelabra import Tensor

__all__ = ["_tensor_symint_registry"]

#: By tensor of offsets: the number of the ragged dimension that it describes.
_tensor_symint_registry: weakref.WeakKeyDictionary[Tensor, Any] = weakref.WeakKeyDictionary()
