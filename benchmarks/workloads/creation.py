"""New tensors."""

from __future__ import annotations

from ..workload import forward

WORKLOADS = [
    forward("zeros, 1 K", lambda xp: xp.zeros(1_000)),
    forward("arange, 1 K", lambda xp: xp.arange(1_000)),
    forward("linspace, 1 K", lambda xp: xp.linspace(0, 1, 1_000)),
    forward("eye, 64", lambda xp: xp.eye(64)),
    forward("zeros, 100 K", lambda xp: xp.zeros(100_000)),
    forward("zeros, 4 M", lambda xp: xp.zeros(4_000_000)),
    forward("full, 4 M", lambda xp: xp.full((4_000_000,), 2.5)),
    forward("arange, 100 K", lambda xp: xp.arange(100_000)),
    forward("arange, 4 M", lambda xp: xp.arange(4_000_000)),
    forward("linspace, 4 M", lambda xp: xp.linspace(0, 1, 4_000_000)),
    forward("eye, 2048", lambda xp: xp.eye(2048)),
    forward("tril_indices, 1000", lambda xp: xp.tril_indices(1000, 1000)),
]
