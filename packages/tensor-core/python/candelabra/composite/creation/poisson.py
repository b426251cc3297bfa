"""Random numbers of Poisson distributions."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to
from ..registration import function
from ..transformed import all_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Generator, Tensor

_empty = OPERATORS["empty"]
_where = OPERATORS["where"]
#: Rates from here on are drawn by rejection, smaller ones by counting arrivals (Hörmann 1993).
_REJECTION_FROM = 10.0


@function(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw from Poisson distributions of the given rates.

    Parameters
    ----------
    input : Tensor
        The rates, floating point and not negative.
    generator : Generator, optional
        The random generator; by default the device's.

    Returns
    -------
    Tensor
        Counts, of the dtype of `input`. NaN and infinite rates are returned unchanged.

    Raises
    ------
    RuntimeError
        If a rate is negative.

    Notes ----- For rates below 10, counts exponential intervals until their sum exceeds the rate.
    Larger rates use the transformed rejection with squeeze (PTRS) of W. Hörmann, The transformed
    rejection method for generating Poisson random variables, Insurance: Mathematics and Economics
    12 (1993). All elements at once, in float64.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.poisson(candelabra.zeros(2))
    tensor([0., 0.])
    """
    rate = input.detach().to(_C.float64)
    if bool(all_values(rate < 0).any()):
        raise RuntimeError("poisson(): the rates must not be negative")
    large = rate >= _REJECTION_FROM
    small = (rate > 0) & ~large
    count = rate + 0
    if bool(all_values(small).any()):
        count = _where(small, _by_arrivals(_where(small, rate, 0.0), generator), count)
    large = large & (rate < float("inf"))
    if bool(all_values(large).any()):
        count = _where(large, _by_rejection(_where(large, rate, _REJECTION_FROM), ~large, generator), count)
    return narrow_to(count, input.dtype)


def _uniform(like: Tensor, generator: Generator | None) -> Tensor:
    return OPERATORS["uniform_"](_empty(like.shape, dtype=_C.float64, device=like.device), generator=generator)


def _by_arrivals(left: Tensor, generator: Generator | None) -> Tensor:
    count = left * 0
    while True:
        left = left - OPERATORS["exponential_"](
            _empty(left.shape, dtype=_C.float64, device=left.device), generator=generator
        )
        arrived = left > 0
        if not bool(all_values(arrived).any()):
            return count
        count = count + arrived


def _by_rejection(rate: Tensor, done: Tensor, generator: Generator | None) -> Tensor:
    """Draw by PTRS. Rates must be at least 10; elements in `done` are skipped."""
    result, taken = _attempt(rate, generator)
    done = done | taken
    if type(done) is not _C.Tensor:  # vmap does not support selecting the remaining elements
        while not bool(all_values(done).all()):
            again, taken = _attempt(rate, generator)
            result = _where(done, result, again)
            done = done | taken
        return result
    flat, result, pending = rate.reshape(-1), result.reshape(-1), (~done).reshape(-1).nonzero().reshape(-1)
    while pending.numel():
        again, taken = _attempt(flat[pending], generator)
        result[pending] = again
        pending = pending[(~taken).nonzero().reshape(-1)]
    return result.reshape(rate.shape)


def _attempt(rate: Tensor, generator: Generator | None) -> tuple[Tensor, Tensor]:
    """Make one attempt for each rate; return the counts and which are accepted."""
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    u = _uniform(rate, generator) - 0.5
    v = _uniform(rate, generator)
    edge = 0.5 - u.abs()
    k = ((2 * a / edge + b) * u + rate + 0.43).floor()
    inside = (k >= 0) & ((edge >= 0.013) | (v <= edge))
    quick = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    height = (v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b)).log()
    return k, inside & (quick | (height <= k * rate.log() - rate - OPERATORS["lgamma"](k + 1)))
