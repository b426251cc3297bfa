"""``torch.__config__``: build information."""

from __future__ import annotations

import candelabra

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return the version and the installed backends."""
    devices = ", ".join(sorted(candelabra.backends.installed()))
    return f"Candelabra {candelabra.__version__}, with backends for {devices}\n"


def parallel_info() -> str:
    """Return the number of threads."""
    return f"at::get_num_threads() : {candelabra.get_num_threads()}\n"
