"""Build causal masks for queries and keys of different lengths.

They are masks for `candelabra.nn.functional.scaled_dot_product_attention`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import candelabra
from candelabra import Tensor


class CausalVariant(IntEnum):
    """Enumerate the corners to which a causal mask is aligned.

    UPPER_LEFT: query i attends to keys 0 to i. LOWER_RIGHT: the last query attends to all keys.
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """Represent a causal mask (L, S) as a boolean tensor that knows its variant.

    Parameters
    ----------
    variant
        The corner to which it is aligned.
    seq_len_q, seq_len_kv
        The lengths L of the queries and S of the keys.

    Raises
    ------
    AssertionError
        If `variant` is not a `CausalVariant`.

    Examples
    --------
    >>> from candelabra.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = candelabra.ones(seq_len_q, seq_len_kv, dtype=candelabra.bool).tril(shift)
        made: Any = Tensor._make_subclass(cls, mask, False)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made  # type: ignore[no-any-return]

    def _materialize(self, device: Any = None) -> Tensor:
        """Return the mask as a plain tensor."""
        plain = self.as_subclass(Tensor)
        return plain if device is None else plain.to(device)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def _size(name: str, size: tuple[Any, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size[0], size[1]


def causal_upper_left(*size: int) -> CausalBias:
    """Return a causal mask (L, S) aligned to the upper left corner.

    Query i attends to keys 0 to i.

    Examples
    --------
    >>> from candelabra.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_size("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """Return a causal mask (L, S) aligned to the lower right corner.

    The last query attends to all keys.

    Examples
    --------
    >>> from candelabra.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_size("causal_lower_right", size))


__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]
