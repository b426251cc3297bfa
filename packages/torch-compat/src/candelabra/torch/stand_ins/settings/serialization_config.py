"""``torch.utils.serialization.config``: defaults of saving and loading."""

from __future__ import annotations

from typing import Any

from candelabra import serialization

__all__ = ["load", "save"]


class _Load:
    """Defaults of ``torch.load``."""

    mmap: bool = False
    calculate_storage_offsets: bool = False

    @property
    def endianness(self) -> Any:
        """The byte order of files that do not record it."""
        return serialization.get_default_load_endianness()

    @endianness.setter
    def endianness(self, value: Any) -> None:
        serialization.set_default_load_endianness(value)

    @property
    def mmap_flags(self) -> int:
        """How files are mapped."""
        return serialization.get_default_mmap_options()

    @mmap_flags.setter
    def mmap_flags(self, value: int) -> None:
        serialization.set_default_mmap_options(value)


class _Save:
    """Defaults of ``torch.save``."""

    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64

    @property
    def compute_crc32(self) -> bool:
        """Whether files get checksums."""
        return serialization.get_crc32_options()

    @compute_crc32.setter
    def compute_crc32(self, value: bool) -> None:
        serialization.set_crc32_options(value)


load, save = _Load(), _Save()
