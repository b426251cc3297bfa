"""The chi-squared distribution."""

from __future__ import annotations

from candelabra import Tensor

from .. import constraints
from ..utils import broadcast_all
from .gamma import Gamma


class Chi2(Gamma):
    """The chi-squared distribution of the sum of `df` squared standard normal variables.

    Equal to ``Gamma(df / 2, 1 / 2)``.

    Parameters
    ----------
    df : Tensor or float
        Degrees of freedom.

    Examples
    --------
    >>> from candelabra.distributions import Chi2
    >>> Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}
    _expandable = {"concentration": 0, "rate": 0}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        (half,) = broadcast_all(df)
        super().__init__(0.5 * half, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2
