"""The exceptions of distributed training."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """An error of distributed training; the base of the others."""


class DistBackendError(DistError):
    """A collective failed, or another rank did."""


class DistStoreError(DistError):
    """A store refused an operation, or a key did not appear in time."""


class DistNetworkError(DistError):
    """A store's server cannot be reached, or its port cannot be opened."""


class QueueEmptyError(DistStoreError):
    """``queue_pop(block=False)`` found no value."""
