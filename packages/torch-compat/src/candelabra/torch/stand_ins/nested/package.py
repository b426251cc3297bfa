"""``torch.nested``: names that raise, because there are no nested tensors."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]


def _refuse(*arguments: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError: pad the tensors, or keep a list of them."""
    raise NotImplementedError("there are no nested tensors: pad the tensors, or keep a list of them")


as_nested_tensor = nested_tensor = nested_tensor_from_jagged = to_padded_tensor = _refuse
