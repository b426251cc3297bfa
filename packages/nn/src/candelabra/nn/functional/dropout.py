"""Implement dropout."""

from __future__ import annotations

from candelabra import _C, Tensor, ops

_native_dropout = ops.native_dropout


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability `p` and scale the others by 1 / (1 - p).

    If not `training`, return the input.

    Raises
    ------
    ValueError
        If p is not a probability.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.dropout(candelabra.ones(3), 1.0)
    tensor([0., 0., 0.])
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input.mul_(0) if inplace else input * 0
    if inplace:
        return input.mul_(_keep(input, tuple(input.shape), p).div_(1 - p))
    return _native_dropout(input, p)[0]


def _keep(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Return a random mask: 1 with probability 1 - p, else 0."""
    return input.new_empty(shape).bernoulli_(1 - p)


def _channels(input: Tensor) -> tuple[int, ...]:
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*input.shape[:2], *(1,) * (input.ndim - 2))


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Zero whole channels at random. Shapes: (N, C, ...)."""
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if p == 1.0:
        return input.mul_(0) if inplace else input * 0
    noise = _keep(input, _channels(input), p).div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels at random. Shapes: (N, C, L) or (C, L)."""
    _check(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to provide channel-wise "
            "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.ndim == 3:
        return feature_dropout(input, p, training, inplace)
    result = feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels at random.

    Shapes: (N, C, H, W). An input (N, C, L) is accepted with a warning.
    """
    _check(p)
    if input.ndim not in (3, 4):
        _C.warn(
            f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result in an error in a future release. "
            "To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d exists to provide "
            "channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 3D or "
            "4D inputs).",
        )
    if input.ndim == 3:
        _C.warn(
            "dropout2d: Received a 3-D input to dropout2d and assuming that channel-wise 1-D dropout behavior is desired - input is "
            "interpreted as shape (N, C, L), where C is the channel dim. For channel-wise dropout of an unbatched (C, H, W) input, add a "
            "batch dimension; for (N, C, L) inputs use dropout1d.",
        )
    return feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels at random. Shapes: (N, C, D, H, W) or (C, D, H, W)."""
    _check(p)
    if input.ndim not in (4, 5):
        _C.warn(
            f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result in an error in a future release. "
            "To retain the behavior and silence this warning, please use dropout instead. Note that dropout3d exists to provide "
            "channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 4D or "
            "5D inputs).",
        )
    if input.ndim != 4:
        return feature_dropout(input, p, training, inplace)
    result = feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


#: The value of a dropped element: -scale * alpha of SELU.
_ALPHA = -1.7580993408473766


def _alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if p == 1.0:
        return input.mul_(0) if inplace else input * 0
    a = ((1 - p) * (1 + p * _ALPHA**2)) ** -0.5
    keep = _keep(input, shape, p)
    shift = ((1 - keep) * _ALPHA - _ALPHA * p) * a
    return input.mul_(keep * a).add_(shift) if inplace else input * (keep * a) + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply dropout that preserves mean 0 and variance 1, for SELU networks.

    Source: Klambauer et al., 2017.
    """
    _check(p)
    return _alpha_dropout(input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply `alpha_dropout` to whole channels."""
    _check(p)
    if not training or p == 0.0 or input.numel() == 0:
        return input
    return _alpha_dropout(input, p, training, inplace, _channels(input))


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]
