"""What a checkpoint holds, as PyTorch describes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import candelabra


@dataclass(frozen=True)
class ChunkStorageMetadata:
    """One stored part of a tensor: where it is in the whole tensor."""

    offsets: candelabra.Size
    sizes: candelabra.Size


@dataclass(frozen=True)
class TensorProperties:
    """The properties of a tensor besides its shape."""

    dtype: candelabra.dtype


@dataclass(frozen=True)
class TensorStorageMetadata:
    """A tensor in a checkpoint."""

    properties: TensorProperties
    size: candelabra.Size
    chunks: list[ChunkStorageMetadata]


@dataclass(frozen=True)
class BytesStorageMetadata:
    """Something in a checkpoint that is no tensor."""


class Metadata:
    """The contents of a checkpoint.

    Parameters
    ----------
    read : callable
        Returns the entries by name.
    """

    def __init__(self, read: Callable[[], dict[str, TensorStorageMetadata | BytesStorageMetadata]]) -> None:
        self._read = read

    @cached_property
    def state_dict_metadata(self) -> dict[str, TensorStorageMetadata | BytesStorageMetadata]:
        """The entries by their flat names, read at the first use."""
        return self._read()

    def __repr__(self) -> str:
        return f"Metadata({self.state_dict_metadata!r})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Metadata) and self.state_dict_metadata == other.state_dict_metadata

    __hash__ = None  # type: ignore[assignment]
