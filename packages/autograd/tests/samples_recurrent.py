"""Sample arguments for recurrent layers."""

from __future__ import annotations

from typing import Any


def _lstm(d: Any) -> list[Any]:
    return [((d(3, 2, 8), d(2, 2), d(2, 2), d(8, 2), reverse), {}) for reverse in (False, True)]


SAMPLERS = {"lstm_sequence": _lstm}
