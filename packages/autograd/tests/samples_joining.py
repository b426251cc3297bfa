"""Sample arguments for operators that rearrange elements."""

from __future__ import annotations

from typing import Any


def call(*arguments: Any) -> Any:
    return arguments, {}


SAMPLERS: dict[str, Any] = {
    "pixel_shuffle": lambda d: [call(d(4, 2, 1), 2), call(d(2, 8, 1, 2), 2), call(d(1, 9, 1, 1), 3)],
    "pixel_unshuffle": lambda d: [call(d(1, 2, 4), 2), call(d(2, 1, 2, 2), 2), call(d(1, 1, 3, 3), 3)],
    "channel_shuffle": lambda d: [call(d(1, 6, 2), 3), call(d(2, 4, 1, 2), 2), call(d(1, 4, 1), 4)],
}
