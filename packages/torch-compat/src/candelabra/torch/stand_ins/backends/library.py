"""Libraries that the CPU backend includes: MKL, oneDNN (mkldnn) and OpenMP."""

from __future__ import annotations

from candelabra import backends

__all__ = ["enabled", "is_available"]

enabled = True


def is_available() -> bool:
    """Return whether the CPU backend, which includes the library, is installed."""
    return "cpu" in backends.installed()
