"""``torch.jit.annotations`` and ``torch.TensorType``: types of TorchScript."""

from __future__ import annotations

from typing import Any, List  # noqa: UP035  (libraries import it from here)

__all__ = ["TensorType", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "List"]


class BroadcastingList:
    """The type of a list of a fixed length, or of one number for all entries."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return kind


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList


class TensorType:
    """The type of tensors in TorchScript; programs annotate with it."""

    annotation_str = "Tensor"
    _only: TensorType | None = None

    @classmethod
    def get(cls) -> TensorType:
        """Return the type, of which there is one."""
        if cls._only is None:
            cls._only = cls()
        return cls._only

    def kind(self) -> str:
        """Return the name of the class."""
        return "TensorType"

    def __repr__(self) -> str:
        return self.annotation_str
