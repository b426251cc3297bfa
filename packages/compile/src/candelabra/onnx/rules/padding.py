"""Rules of padding."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import AnySize, Builder, Value
from .table import rule

_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _amounts(b: Builder, self: Value, padding: Sequence[AnySize]) -> str:
    """Return the amounts before all dimensions and then after them; `padding` begins with the
    last.
    """
    unchanged = [0] * (self.rank - len(padding) // 2)
    return b.sizes([*unchanged, *padding[-2::-2], *unchanged, *padding[::-2]])


@rule("_constant_pad_nd", sizes="padding")
def _constant_pad_nd(b: Builder, self: Value, padding: Sequence[AnySize], value: float) -> str:
    if all(amount == 0 for amount in padding):
        return b.name(self)
    return b.op("Pad", self, _amounts(b, self, padding), b.constant(value, self.dtype))


@rule("_reflection_replication_pad", sizes="padding")
def _reflection_replication_pad(b: Builder, self: Value, padding: Sequence[AnySize], mode: str) -> str:
    kind = _MODES[mode]
    if kind == "wrap" and b.opset < 19:
        b.refuse("circular padding is in operator set 19")
    return b.op("Pad", self, _amounts(b, self, padding), mode=kind)
