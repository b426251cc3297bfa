"""Indices of multinomial distributions, drawn by rows of weights."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..registration import function
from ..transformed import any_holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Generator, Tensor

_empty = OPERATORS["empty"]


@function(out="exact")
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw indices with probabilities in proportion to weights.

    Parameters
    ----------
    input : Tensor
        Weights, not negative: one row, or one row a distribution.
    num_samples : int
        The number of indices per row.
    replacement : bool
        Whether to draw with replacement.
    generator : Generator, optional
        The random generator; by default the device's.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        Of dtype int64, with `num_samples` columns.

    Notes
    -----
    Without replacement: the largest of ``weight / exponential draw`` (Efraimidis and Spirakis
    2006). With it: a search of uniform draws in the running sums.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.multinomial(candelabra.tensor([0.0, 1.0]), 2, replacement=True)
    tensor([1, 1])
    """
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {_C.Tensor.type(input)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    weights = input.detach().to(_C.float64)
    if any_holds(OPERATORS["logical_not"](OPERATORS["isfinite"](weights)) | (weights < 0)):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    possible = OPERATORS["sum"](weights > 0, -1)
    if any_holds(possible <= 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement:
        if any_holds(possible < num_samples):
            raise RuntimeError(
                "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)"
            )
        draws = OPERATORS["exponential_"](
            _empty(weights.shape, dtype=_C.float64, device=weights.device), generator=generator
        )
        result = OPERATORS["topk"](weights / draws, num_samples)[1]
    else:
        sums = OPERATORS["cumsum"](weights, -1)
        total = OPERATORS["narrow"](sums, -1, sums.shape[-1] - 1, 1)
        draws = OPERATORS["uniform_"](
            _empty((*weights.shape[:-1], num_samples), dtype=_C.float64, device=weights.device), generator=generator
        )
        # The first of equal sums, so that indices of weight zero are never drawn.
        result = _C.Tensor.searchsorted(sums, draws * total, right=True)
        result = OPERATORS["clamp"](result, max=weights.shape[-1] - 1)
    return result if out is None else _C.give_to_out("multinomial", out, result)
