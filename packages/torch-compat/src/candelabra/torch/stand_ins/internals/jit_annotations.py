"""``torch.jit.annotations``: types of TorchScript."""

from __future__ import annotations

from typing import Any, List  # noqa: UP035  (libraries import it from here)

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "List"]


class BroadcastingList:
    """The type of a list of a fixed length, or of one number for all entries."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return kind


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList
