"""Objects that checkpoints save by their own state."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with a state: a module, an optimizer, a scheduler, a loader.

    `save` stores its ``state_dict()``. `load` fills its present ``state_dict()`` in and hands it to
    ``load_state_dict``.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Set the state."""
