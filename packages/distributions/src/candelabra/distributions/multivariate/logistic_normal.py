"""The logistic-normal distribution."""

from __future__ import annotations

from candelabra import Tensor

from .. import constraints
from ..combined.independent import Independent
from ..combined.transformed_distribution import TransformedDistribution
from ..continuous.normal import Normal
from ..transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution over vectors of K + 1 numbers that sum to 1.

    Draws are K independent normal variables mapped by stick breaking.

    Parameters
    ----------
    loc, scale : Tensor
        (..., K) means and standard deviations.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import LogisticNormal
    >>> LogisticNormal(candelabra.zeros(3), candelabra.ones(3)).event_shape
    candelabra.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent
    _expandable = {}

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined, no-any-return]

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined, no-any-return]
