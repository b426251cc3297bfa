"""Probability distributions: not in this version yet; every name asked for says so."""

from __future__ import annotations

from typing import NoReturn

__version__ = "0.1.0"
__all__: list[str] = []


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"candelabra.distributions.{name} is not there yet: version {__version__} of candelabra-distributions only reserves the place. "
        "pip install --upgrade candelabra-distributions brings it once it is released"
    )
