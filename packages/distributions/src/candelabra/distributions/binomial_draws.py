"""Draws from binomial distributions."""

from __future__ import annotations

import candelabra
from candelabra import Tensor


def binomial(count: Tensor, prob: Tensor) -> Tensor:
    """Draw the numbers of successes in `count` trials of probability `prob` each; of one shape and dtype.

    Notes
    -----
    Where ten successes or more are expected (of the rarer outcome), by transformed rejection: Hörmann, "The generation of binomial random
    variates", 1993, algorithm BTRS. Elsewhere by adding up geometric waiting times: Devroye, Non-Uniform Random Variate Generation, 1986,
    chapter X.4.3. All elements at once.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.binomial_draws import binomial
    >>> binomial(candelabra.tensor([3.0, 3.0]), candelabra.tensor([0.0, 1.0]))
    tensor([0., 3.])
    """
    n = count.detach().to(candelabra.float64).reshape(-1)
    p = prob.detach().to(candelabra.float64).reshape(-1)
    broken = n.isnan() | p.isnan()
    swapped = p > 0.5  # the rarer outcome is counted
    q = candelabra.where(broken, 0.0, candelabra.where(swapped, 1 - p, p))
    result = candelabra.zeros_like(n)
    large = n * q >= 10
    for places, draw in ((large.nonzero().squeeze(-1), _by_rejection), ((~large & (q > 0)).nonzero().squeeze(-1), _by_waiting)):
        if places.numel():
            result[places] = draw(n[places], q[places])
    result = candelabra.where(broken, candelabra.nan, candelabra.where(swapped, n - result, result))
    return result.reshape(count.shape).to(count.dtype)


def _by_waiting(n: Tensor, q: Tensor) -> Tensor:
    successes, waited = candelabra.zeros_like(n), candelabra.zeros_like(n)
    step = candelabra.log1p(-q)
    while True:
        u = 1 - candelabra.rand(n.shape, dtype=n.dtype, device=n.device)
        waited = waited + (u.log() / step).floor() + 1
        reached = waited <= n
        if not bool(reached.any()):
            return successes
        successes = successes + reached


def _by_rejection(n: Tensor, p: Tensor) -> Tensor:
    """Algorithm BTRS, for p up to one half and n p from 10 on."""
    result = candelabra.empty_like(n)
    places = candelabra.arange(n.numel(), device=n.device)
    while places.numel():
        m, q = n[places], p[places]
        root = (m * q * (1 - q)).sqrt()
        b = 1.15 + 2.53 * root
        a = -0.0873 + 0.0248 * b + 0.01 * q
        c = m * q + 0.5
        inner = 0.92 - 4.2 / b
        u = candelabra.rand(m.shape, dtype=m.dtype, device=m.device) - 0.5
        v = 1 - candelabra.rand(m.shape, dtype=m.dtype, device=m.device)
        distance = 0.5 - u.abs()
        k = ((2 * a / distance + b) * u + c).floor()
        possible = (k >= 0) & (k <= m)
        k = candelabra.where(possible, k, 0.0)
        sure = (distance >= 0.07) & (v <= inner)
        mode = ((m + 1) * q).floor()
        alpha = (2.83 + 5.1 / b) * root
        bound = (
            candelabra.lgamma(mode + 1)
            + candelabra.lgamma(m - mode + 1)
            - candelabra.lgamma(k + 1)
            - candelabra.lgamma(m - k + 1)
            + (k - mode) * (q.log() - candelabra.log1p(-q))
        )
        accepted = possible & (sure | ((v * alpha / (a / (distance * distance) + b)).log() <= bound))
        result[places[accepted]] = k[accepted]
        places = places[~accepted]
    return result
