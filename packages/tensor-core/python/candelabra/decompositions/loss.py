"""Losses of classes."""

from __future__ import annotations

import candelabra

from .registration import decomposes, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor

where = candelabra.where
_MEAN, _SUM = 1, 2


def _weights(
    self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, name: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return which targets count, the targets with 0 for the others, and the weight of each."""
    kept = target != ignore_index
    safe = where(kept, target, target.new_zeros(()))
    if safe.numel() and bool(kept.any()):
        least, most, classes = int(safe.amin()), int(safe.amax()), self.shape[1]
        if least < 0 or most >= classes:
            raise IndexError(f"{name}(): Target {least if least < 0 else most} is out of bounds.")
    x = wide(self)
    if weight is None or self.shape[1] == 0:
        return kept, safe, kept.to(x.dtype)
    chosen = candelabra.gather(wide(weight), 0, safe.reshape(-1)).reshape(safe.shape)
    return kept, safe, where(kept, chosen, x.new_zeros(()))


@decomposes("nll_loss_forward")
def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    kept, safe, weights = _weights(self, target, weight, ignore_index, "nll_loss")
    x = wide(self)
    # Without classes, all targets are ignored.
    chosen = candelabra.gather(x, 1, safe.unsqueeze(1)).squeeze(1) if self.shape[1] else weights
    # An ignored target has no loss, even where the score is infinite.
    losses, total = where(kept, -chosen * weights, x.new_zeros(())), weights.sum()
    if reduction == _MEAN:
        return losses.sum() / total, total
    return losses.sum() if reduction == _SUM else losses, total


@decomposes("nll_loss_backward")
def nll_loss_backward(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    kept, safe, weights = _weights(self, target, weight, ignore_index, "nll_loss_backward")
    share = -weights * wide(grad)
    if reduction == _MEAN:
        share = share / wide(total_weight)
    share = where(kept, share, share.new_zeros(()))
    result = share.new_zeros(self.shape)
    if self.shape[1] == 0:
        return result
    return candelabra.scatter(result, 1, safe.unsqueeze(1), share.unsqueeze(1))
