"""Reduce elementwise losses."""

from __future__ import annotations

from candelabra import _C, Tensor


def legacy(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Translate the legacy arguments `size_average` and `reduce` to a reduction."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        _C.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        )
    return reduction


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Reduce losses: return them unchanged, or return their mean or sum."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(f"{reduction} is not a valid value for reduction")
