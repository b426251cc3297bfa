"""Special functions."""

from __future__ import annotations

from ..inputs import uniform
from ..workload import forward

N = 1_000_000

WORKLOADS = [
    forward("erfinv, 1 K", lambda xp, x: xp.erfinv(x), uniform(1_000, low=-0.99, high=0.99)),
    forward("digamma, 10 K", lambda xp, x: xp.digamma(x), uniform(10_000)),
    forward(
        "xlogy, 1024 x 1024, a column", lambda xp, x, y: xp.xlogy(x, y), uniform(1024, 1024), uniform(1024, 1, number=1)
    ),
    forward("lgamma, 1 M, every second element", lambda xp, x: xp.lgamma(x), uniform(N, layout="strided")),
    forward("lgamma, 1 M", lambda xp, x: xp.lgamma(x), uniform(N)),
    forward("lgamma, 10 K", lambda xp, x: xp.lgamma(x), uniform(10_000)),
    forward("digamma, 1 M", lambda xp, x: xp.digamma(x), uniform(N)),
    forward("erfinv, 1 M", lambda xp, x: xp.erfinv(x), uniform(N, low=-0.99, high=0.99)),
    forward("erfinv, 1 M, float64", lambda xp, x: xp.erfinv(x), uniform(N, low=-0.99, high=0.99, dtype="float64")),
    forward("erfc, 1 M, float64", lambda xp, x: xp.erfc(x), uniform(N, low=-3.0, high=3.0, dtype="float64")),
    forward("logit, 1 M", lambda xp, x: xp.logit(x), uniform(N, low=0.01, high=0.99)),
    forward("erfcx, 1 M", lambda xp, x: xp.special.erfcx(x), uniform(N)),
    forward("i0, 1 M", lambda xp, x: xp.i0(x), uniform(N)),
    forward("bessel_j0, 1 M", lambda xp, x: xp.special.bessel_j0(x), uniform(N, high=20.0)),
    forward("ndtri, 1 M", lambda xp, x: xp.special.ndtri(x), uniform(N, low=0.01, high=0.99)),
    forward("log_ndtr, 1 M", lambda xp, x: xp.special.log_ndtr(x), uniform(N)),
    forward("xlogy, 1 M", lambda xp, x, y: xp.xlogy(x, y), uniform(N), uniform(N, number=1)),
    forward("logaddexp, 1 M", lambda xp, x, y: xp.logaddexp(x, y), uniform(N), uniform(N, number=1)),
    forward("igamma, 100 K", lambda xp, x, y: xp.igamma(x, y), uniform(100_000), uniform(100_000, number=1)),
    forward("polygamma(1), 1 M", lambda xp, x: xp.polygamma(1, x), uniform(N)),
    forward(
        "zeta, 100 K",
        lambda xp, x, y: xp.special.zeta(x, y),
        uniform(100_000, low=1.5, high=4.0),
        uniform(100_000, number=1),
    ),
]
