"""Checkpoints of a job that any number of ranks can load."""

from __future__ import annotations

from .sharded import Sharded, Shards

__all__ = ["Sharded", "Shards"]
