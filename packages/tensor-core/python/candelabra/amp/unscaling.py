"""The arithmetic of `GradScaler`: gradients scaled down and searched for infinite values, and the
next factor.
"""

from __future__ import annotations

import candelabra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._C import Tensor


def _amp_foreach_non_finite_check_and_unscale_(grads: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by a factor, in place, and set `found_inf` to 1 if one is not finite.

    Parameters
    ----------
    grads : sequence of Tensor
        Gradients on one device.
    found_inf : Tensor
        One float32 element, which is left as it is if all gradients are finite.
    inv_scale : Tensor
        The factor: one float32 element.
    """
    factor = inv_scale.reshape(())
    with candelabra.no_grad():
        for grad in grads:
            found_inf.masked_fill_(candelabra.isfinite(grad).all().logical_not(), 1.0)
            grad.mul_(factor)


def _amp_update_scale_(
    scale: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Make a factor smaller after infinite gradients, or larger after enough updates without.

    Parameters
    ----------
    scale, growth_tracker : Tensor
        The factor, and the number of updates since it was last changed, both changed in place.
    found_inf : Tensor
        Whether gradients were infinite: not 0 if they were.
    scale_growth_factor, scale_backoff_factor, growth_interval
        As for `GradScaler`.

    Returns
    -------
    Tensor
        `scale`.
    """
    with candelabra.no_grad():
        if bool(found_inf):
            scale.mul_(scale_backoff_factor)
            growth_tracker.zero_()
        elif int(growth_tracker) + 1 == growth_interval:
            grown = scale * scale_growth_factor
            if bool(candelabra.isfinite(grown)):
                scale.copy_(grown)
            growth_tracker.zero_()
        else:
            growth_tracker.add_(1)
    return scale
