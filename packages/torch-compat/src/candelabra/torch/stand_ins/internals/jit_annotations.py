"""``torch.jit.annotations``, ``torch.TensorType`` and the graphs of ``torch._C``: TorchScript."""

from __future__ import annotations

from typing import Any, List, NoReturn  # noqa: UP035  (libraries import it from here)

__all__ = [
    "Graph",
    "Node",
    "TensorType",
    "Value",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "List",
]


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


class _Traced:
    def __init__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise RuntimeError(
            f"torch._C.{type(self).__name__}: there are no TorchScript graphs; torch.fx.symbolic_trace returns a graph"
        )


class Graph(_Traced):
    """A graph of TorchScript; there are none, and programs annotate with it."""


class Node(_Traced):
    """A call in a graph of TorchScript; there are none."""


class Value(_Traced):
    """A value in a graph of TorchScript; there are none."""
