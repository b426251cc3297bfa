"""Errors of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping


class CheckpointException(RuntimeError):
    """A checkpoint was not saved, or not loaded.

    Parameters
    ----------
    msg : str
        What has happened.
    failures : dict, optional
        The errors by rank.
    """

    def __init__(self, msg: str, failures: Mapping[int, BaseException | str] | None = None) -> None:
        self._failures = dict(failures or {})
        causes = "".join(f"\n  rank {rank}: {error}" for rank, error in sorted(self._failures.items()))
        super().__init__(msg + causes)

    @property
    def failures(self) -> dict[int, BaseException | str]:
        """The errors by rank."""
        return self._failures
