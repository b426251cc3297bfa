"""Pickling of Generator."""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _reduce(generator: Any, protocol: Any) -> Any:
    # Made by its class, and then given its seed and its state, as in PyTorch's files.
    return _C.Generator, (generator.device,), (generator.initial_seed(), None, generator.get_state())


def _set_state(generator: Any, state: Any) -> None:
    seed, _, numbers = state
    generator.manual_seed(seed)
    generator.set_state(numbers)


_C.Generator.__reduce_ex__ = _reduce  # type: ignore[method-assign, assignment]
_C.Generator.__setstate__ = _set_state  # type: ignore[attr-defined]
