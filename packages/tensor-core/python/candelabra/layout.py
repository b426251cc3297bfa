"""Memory layouts. The only one is strided."""

from __future__ import annotations


class layout:
    """The memory layout of a tensor. The only layout is ``candelabra.strided``: sizes and strides
    on one storage.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"candelabra.{self._name}"

    def __reduce__(self) -> str:
        return self._name


layout.__module__ = "candelabra"
#: Sizes and strides on one storage.
strided = layout("strided")
