"""Names for what functions take; for type checkers and readers only."""

from __future__ import annotations

from typing import TypeAlias

from candelabra._C import Tensor, device

#: A Python number.
Number: TypeAlias = bool | int | float | complex
#: What can be given as a device: itself, its text, the number of an accelerator; None for the
#: default.
Device: TypeAlias = device | str | int | None

__all__ = ["Device", "Number", "Tensor"]
