"""Pad the ends of dimensions, or crop them where the padding is negative."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, ops


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions.

    Parameters
    ----------
    input
        Any shape.
    pad
        Padding sizes: before and after the last dimension, before and after the second to last, and
        so on. Negative sizes crop.
    mode
        ``"constant"``, ``"reflect"`` (mirrored, the edge not repeated), ``"replicate"`` (the edge
        repeated) or ``"circular"`` (wrapped around). All modes but constant pad the last one, two
        or three dimensions. The input must have one or two dimensions more.
    value
        Fill value of constant padding. Default: 0.

    Raises
    ------
    RuntimeError, NotImplementedError
        If the padding sizes do not match the shape, or the mode is unknown.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.pad(candelabra.tensor([1.0, 2.0, 3.0]), (1, 2))
    tensor([0., 1., 2., 3., 0., 0.])
    >>> F.pad(candelabra.tensor([[1.0, 2.0, 3.0]]), (2, -1), mode="reflect")
    tensor([[3., 2., 1., 2.]])
    """
    amounts = tuple(pad)
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(amounts)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        return _constant(input, amounts, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(amounts) // 2
    if dims not in (1, 2, 3) or input.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(amounts)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    whole = [int(amount) for amount in amounts]
    for number in range(dims):
        axis = input.ndim - 1 - number
        before, after = whole[2 * number : 2 * number + 2]
        _check_edges(input, axis, before, after, mode)
        if mode == "circular" and (before < 0 or after < 0):
            # Crop first: cropped elements must not wrap around to the other end.
            cut = max(-before, 0)
            input = input.narrow(axis, cut, input.shape[axis] + min(before, 0) + min(after, 0))
            whole[2 * number : 2 * number + 2] = max(before, 0), max(after, 0)
    # The result never shares memory with the input.
    return ops._reflection_replication_pad(input, whole, mode) if any(whole) else input.clone()


def _check_length(input: Tensor, axis: int, before: int, after: int) -> None:
    if input.shape[axis] + before + after < 0:
        raise RuntimeError(
            f"The input size {input.shape[axis]}, plus negative padding {before} and {after}, resulted in a negative output size, which is "
            f"invalid. Check dimension {axis} of your input."
        )


def _constant(input: Tensor, amounts: tuple[int, ...], value: float) -> Tensor:
    for number in range(len(amounts) // 2):
        _check_length(input, input.ndim - 1 - number, *amounts[2 * number : 2 * number + 2])
    return ops._constant_pad_nd(input, amounts, value)


def _check_edges(input: Tensor, axis: int, before: int, after: int, mode: str) -> None:
    length = input.shape[axis]
    _check_length(input, axis, before, after)
    if mode == "reflect" and (before or after) and (before >= length or after >= length):
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {axis} of input {list(input.shape)}"
        )
    if mode == "circular" and max(before, after) > length + min(before, 0) + min(after, 0):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if mode == "replicate" and length == 0 and (before or after):
        raise RuntimeError(
            f"Expected a non-empty dimension {axis} for replicate padding, but got input of size {list(input.shape)}"
        )


_pad = pad


def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """Call :func:`pad` with a constant, with the signature of PyTorch's top-level package.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.constant_pad_nd(candelabra.ones(2), (1, 0))
    tensor([0., 1., 1.])
    """
    return _pad(input, pad, "constant", value)


__all__ = ["constant_pad_nd", "pad"]
