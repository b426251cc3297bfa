"""Libraries that the CPU's backend is built with: MKL, oneDNN (mkldnn) and OpenMP."""

from __future__ import annotations

from candelabra import backends

__all__ = ["enabled", "is_available"]

enabled = True


def is_available() -> bool:
    """Whether the library is there: it is part of the CPU's backend."""
    return "cpu" in backends.installed()
