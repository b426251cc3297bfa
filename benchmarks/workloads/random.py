"""Random numbers."""

from __future__ import annotations

from ..inputs import uniform
from ..workload import both_ways, forward

WORKLOADS = [
    forward(
        "normal_ of every second element, 4 M",
        lambda xp, x: x[:, ::2].normal_(),
        uniform(2000, 4000),
        read=16_000_000,
        comparable=False,
    ),
    forward("dropout, 1 K", lambda xp, x: xp.nn.functional.dropout(x, 0.1), uniform(1_000), comparable=False),
    forward("bernoulli, 100 K", lambda xp, p: xp.bernoulli(p), uniform(100_000, low=0.0, high=1.0), comparable=False),
    forward("randn, 1 K", lambda xp: xp.randn(1_000), comparable=False),
    forward("randn, 100 K", lambda xp: xp.randn(100_000), comparable=False),
    forward("randn, 4 M", lambda xp: xp.randn(4_000_000), comparable=False),
    forward("randn, 1 M, float64", lambda xp: xp.randn(1_000_000, dtype=xp.float64), comparable=False),
    forward("rand, 1 K", lambda xp: xp.rand(1_000), comparable=False),
    forward("rand, 4 M", lambda xp: xp.rand(4_000_000), comparable=False),
    forward("randint, 4 M", lambda xp: xp.randint(0, 1000, (4_000_000,)), comparable=False),
    forward("randperm, 1 K", lambda xp: xp.randperm(1_000), comparable=False),
    forward("randperm, 1 M", lambda xp: xp.randperm(1_000_000), comparable=False),
    forward("bernoulli, 4 M", lambda xp, p: xp.bernoulli(p), uniform(4_000_000, low=0.0, high=1.0), comparable=False),
    forward("exponential_, 4 M", lambda xp, x: x.exponential_(), uniform(4_000_000), read=0, comparable=False),
    forward(
        "multinomial, 100 of 1000, 256 rows",
        lambda xp, p: xp.multinomial(p, 100, True),
        uniform(256, 1000),
        comparable=False,
    ),
    forward("dropout, 4 M", lambda xp, x: xp.nn.functional.dropout(x, 0.1), uniform(4_000_000), comparable=False),
    both_ways(
        "dropout, forward and backward, 4 M",
        lambda xp, x: xp.nn.functional.dropout(x, 0.1),
        uniform(4_000_000, grad=True),
        comparable=False,
        linear=True,
    ),
]
