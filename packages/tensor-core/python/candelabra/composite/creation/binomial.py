"""Random numbers of binomial distributions."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.broadcasting import broadcast_tensors
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Generator, Tensor

_where = OPERATORS["where"]
_empty = OPERATORS["empty"]
#: Expected counts from here on are drawn by rejection, smaller ones by inversion (Hörmann 1993).
_REJECTION_FROM = 10.0


def _uniform(like: Tensor, generator: Generator | None) -> Tensor:
    return OPERATORS["uniform_"](_empty(like.shape, dtype=_C.float64, device=like.device), generator=generator)


@function(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from binomial distributions: the number of successes in `count` trials with probability
    `prob`.

    Parameters
    ----------
    count : Tensor
        The numbers of trials: integers of a floating-point dtype.
    prob : Tensor
        The probabilities of success, of the same dtype; broadcast with `count`.
    generator : Generator, optional
        The random generator; by default the device's.

    Returns
    -------
    Tensor
        Counts, of the dtype of `count`. NaN where `count` or `prob` is; where `prob` is not above 0
        (not below 1), or `count` not above 0, none (all) of the trials.

    Raises
    ------
    ValueError
        If an argument is not of a floating-point dtype.
    RuntimeError
        If the dtypes differ.

    Notes ----- Uses the transformed rejection with squeeze (BTRS) of W. Hörmann, The generation of
    binomial random variates, Journal of Statistical Computation and Simulation 46 (1993), where at
    least 10 successes (or failures, if there are fewer) are expected, and inversion elsewhere; on
    all elements at once, in float64.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.binomial(candelabra.tensor([5.0, 5.0]), candelabra.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """
    for name, tensor in (("count", count), ("prob", prob)):
        if not tensor.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {tensor.dtype}")
    if count.dtype is not prob.dtype:
        raise RuntimeError(
            f"binomial(): Found dtype {prob.dtype} but expected {count.dtype}: count and prob must be of one dtype"
        )
    n, p = broadcast_tensors(count, prob)
    shape = n.shape
    n, p = n.detach().to(_C.float64).reshape(-1), p.detach().to(_C.float64).reshape(-1)
    drawn = _where((n != n) | (p != p), float("nan"), _where(p >= 1, OPERATORS["clamp"](n, min=0), 0.0))
    rare = OPERATORS["minimum"](p, 1 - p)
    random = (n > 0) & (p > 0) & (p < 1) & (n < float("inf"))
    many = n * rare >= _REJECTION_FROM
    for chosen, draw in ((random & ~many, _by_inversion), (random & many, _by_rejection)):
        places = chosen.nonzero().reshape(-1)
        if places.numel():
            trials = n[places]
            successes = draw(trials, rare[places], generator)
            drawn[places] = _where(p[places] > 0.5, trials - successes, successes)
    return drawn.reshape(shape).to(count.dtype)


def _by_inversion(n: Tensor, p: Tensor, generator: Generator | None) -> Tensor:
    """Draw by inversion: add the probabilities of 0, 1, 2, … until the sum exceeds a uniform
    number. Requires p <= 1/2 and small n p.
    """
    left = _uniform(n, generator)
    odds = p / (1 - p)
    mass = (n * OPERATORS["log1p"](-p)).exp()
    result = n * 0
    walking = left > mass
    k = 0
    # At n all of the probability is used up. If rounding leaves a remainder of the uniform number,
    # the loop ends when the sum stops growing.
    while bool(walking.any()):
        left = left - mass
        k += 1
        mass = mass * odds * OPERATORS["clamp"](n - (k - 1), min=0) / k
        result = _where(walking, float(k), result)
        walking = walking & (left > mass) & (n > k) & (mass > 0)
    return OPERATORS["minimum"](result, n)


def _by_rejection(n: Tensor, p: Tensor, generator: Generator | None) -> Tensor:
    """Draw by BTRS, Hörmann's transformed rejection. Requires p <= 1/2 and n p >= 10."""
    q = 1 - p
    spread = (n * p * q).sqrt()
    b = 1.15 + 2.53 * spread
    mode = ((n + 1) * p).floor()
    lgamma = OPERATORS["lgamma"]
    constants: dict[str, Any] = {
        "n": n, "b": b, "a": -0.0873 + 0.0248 * b + 0.01 * p, "center": n * p + 0.5, "inner": 0.92 - 4.2 / b,
        "alpha": (2.83 + 5.1 / b) * spread, "log_odds": (p / q).log(), "mode": mode,
        "height": lgamma(mode + 1) + lgamma(n - mode + 1),
    }  # fmt: skip
    result = n * 0
    pending = OPERATORS["arange"](0, n.numel(), 1, dtype=_C.int64, device=n.device)
    while pending.numel():
        here = {name: value[pending] for name, value in constants.items()}
        u = _uniform(pending, generator) - 0.5
        v = _uniform(pending, generator)
        edge = 0.5 - u.abs()
        k = ((2 * here["a"] / edge + here["b"]) * u + here["center"]).floor()
        inside = (k >= 0) & (k <= here["n"])
        quick = (edge >= 0.07) & (v <= here["inner"])
        height = (v * here["alpha"] / (here["a"] / (edge * edge) + here["b"])).log()
        bound = here["height"] - lgamma(k + 1) - lgamma(here["n"] - k + 1) + (k - here["mode"]) * here["log_odds"]
        taken = inside & (quick | (height <= bound))
        places = taken.nonzero().reshape(-1)
        result[pending[places]] = k[places]
        pending = pending[(~taken).nonzero().reshape(-1)]
    return result
