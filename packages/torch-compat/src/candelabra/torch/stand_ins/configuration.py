"""``torch.__config__``: how this was built."""

from __future__ import annotations

import candelabra

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Say what the versions are, and which backends there are."""
    devices = ", ".join(sorted(candelabra.backends.installed()))
    return f"Candelabra {candelabra.__version__}, with backends for {devices}\n"


def parallel_info() -> str:
    """Say how many threads there are."""
    return f"at::get_num_threads() : {candelabra.get_num_threads()}\n"
