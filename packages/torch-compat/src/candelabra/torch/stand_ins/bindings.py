"""``torch._C``: names of PyTorch's compiled module that programs use."""

from __future__ import annotations

__all__ = ["_log_api_usage_metadata", "_log_api_usage_once"]


def _log_api_usage_once(event: str) -> None:
    """Do nothing, as PyTorch does without a logger: libraries tell that they are used."""
    if not isinstance(event, str):
        raise TypeError(f"_log_api_usage_once(): incompatible function arguments: {event!r} is no str")


def _log_api_usage_metadata(event: str, metadata_map: dict[str, str]) -> None:
    """Do nothing, as PyTorch does without a logger."""
    if not isinstance(event, str) or not isinstance(metadata_map, dict):
        raise TypeError("_log_api_usage_metadata(): incompatible function arguments: expected a str and a dict")
