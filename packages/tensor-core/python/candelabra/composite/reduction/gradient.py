"""Numerical derivatives of sampled functions."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape, wrap_dim
from ..reduction.scan import diff
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Number

_Tensor = _C.Tensor
_narrow = OPERATORS["narrow"]


def _evenly(values: Tensor, axis: int, distance: Any, edge_order: int) -> Tensor:
    length = values.shape[axis]

    def at(position: int) -> Tensor:
        return _narrow(values, axis, position, 1)

    inside = (_narrow(values, axis, 2, length - 2) - _narrow(values, axis, 0, length - 2)) / (2 * distance)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / distance, (at(length - 1) - at(length - 2)) / distance
    else:
        first = (4 * at(1) - 3 * at(0) - at(2)) / (2 * distance)
        last = (3 * at(length - 1) - 4 * at(length - 2) + at(length - 3)) / (2 * distance)
    return OPERATORS["cat"]([first, inside, last], axis)


def _unevenly(values: Tensor, axis: int, coordinates: Tensor, edge_order: int) -> Tensor:
    # The parabola through three neighbours: Fornberg, "Generation of Finite Difference Formulas on
    # Arbitrarily Spaced Grids", 1988.
    length = values.shape[axis]
    steps = reshape(diff(coordinates), [length - 1 if d == axis else 1 for d in range(values.ndim)])

    def at(position: int) -> Tensor:
        return _narrow(values, axis, position, 1)

    def step(position: int) -> Tensor:
        return _narrow(steps, axis, position, 1)

    before, after = _narrow(steps, axis, 0, length - 2), _narrow(steps, axis, 1, length - 2)
    left, middle, right = (_narrow(values, axis, start, length - 2) for start in (0, 1, 2))
    inside = (
        left * (-after / (before * (before + after)))
        + middle * ((after - before) / (before * after))
        + right * (before / (after * (before + after)))
    )
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step(0), (at(length - 1) - at(length - 2)) / step(length - 2)
    else:
        a, b = step(0), step(1)
        first = at(0) * (-(2 * a + b) / (a * (a + b))) + at(1) * ((a + b) / (a * b)) - at(2) * (a / (b * (a + b)))
        a, b = step(length - 3), step(length - 2)
        last = (
            at(length - 3) * (b / (a * (a + b)))
            - at(length - 2) * ((a + b) / (a * b))
            + at(length - 1) * ((a + 2 * b) / (b * (a + b)))
        )
    return OPERATORS["cat"]([first, inside, last], axis)


def _axes(dim: int | Sequence[int] | None, ndim: int) -> list[int]:
    if dim is None:
        return list(range(ndim))
    axes = [wrap_dim(d, ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    for axis in axes:
        if axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return axes


def _spacings(spacing: Any, axes: Sequence[int], given_axes: bool, ndim: int) -> list[Any]:
    """Return the spacing of each of the dimensions `axes`: a number, or coordinates."""
    spacings: list[Any]
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(axes):
            wanted = (
                f"'self.dim() = {ndim}', since dim argument was not given" if not given_axes else f"'dim' = {len(axes)}"
            )
            raise RuntimeError(
                "candelabra.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"{wanted}, but got a list of length {len(spacing)}"
            )
        spacings = list(spacing)
    else:
        spacings = [1 if spacing is None else spacing] * len(axes)
    coordinates = [isinstance(entry, _Tensor) for entry in spacings]
    if any(coordinates) and not all(coordinates):
        raise TypeError("gradient(): spacing must hold numbers only or Tensors only")
    return spacings


def _check_spacing(input: Tensor, axis: int, entry: Any, edge_order: int) -> None:
    """Check the length of a dimension, and its coordinates if `entry` holds these."""
    if input.shape[axis] < edge_order + 1:
        raise RuntimeError("candelabra.gradient expected each dimension size to be at least edge_order+1")
    if not isinstance(entry, _Tensor):
        return
    if entry.ndim != 1:
        raise RuntimeError(
            "candelabra.gradient expected each element of spacing to have one dimension, but got an element with "
            f"{entry.ndim} dimensions!"
        )
    if entry.device != input.device:
        raise RuntimeError(
            f"candelabra.gradient expected each tensor to be on the same device, but got devices {entry.device} and {input.device}!"
        )
    if entry.shape[0] != input.shape[axis]:
        raise RuntimeError(
            f"candelabra.gradient expected {input.shape[axis]} coordinates for dimension {axis}, but got {entry.shape[0]}"
        )


@function(method=False)
def gradient(
    input: Tensor,
    *,
    spacing: Number | Sequence[Number] | Sequence[Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Estimate the derivatives of a function from its values on a grid, by central differences.

    Parameters
    ----------
    input : Tensor
        The values; integers give floating-point results.
    spacing : number, sequence of numbers or sequence of Tensor, optional
        The distance of neighbours (default 1), one distance per dimension, or the coordinates along
        each dimension.
    dim : int or sequence of int, optional
        The dimensions to differentiate along; all by default.
    edge_order : int
        1 or 2: the order of the one-sided differences at the ends.

    Returns
    -------
    tuple of Tensor
        One derivative per dimension, of the shape of `input`.

    Raises
    ------
    RuntimeError
        If a dimension is shorter than ``edge_order + 1``, or if spacing and dimensions do not
        match.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.gradient(candelabra.tensor([1.0, 2.0, 4.0]))
    (tensor([1.0000, 1.5000, 2.0000]),)
    """
    if isinstance(spacing, _Tensor):
        if spacing.ndim != 0:
            raise TypeError(
                "gradient(): spacing must be a number, a sequence of numbers or a sequence of Tensors, not a Tensor"
            )
        spacing = spacing.item()
    if input.dtype is _C.uint8:
        raise RuntimeError("candelabra.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("candelabra.gradient only supports edge_order=1 and edge_order=2.")
    axes = _axes(dim, input.ndim)
    spacings = _spacings(spacing, axes, dim is not None, input.ndim)
    for axis, entry in zip(axes, spacings):
        _check_spacing(input, axis, entry, edge_order)
    return tuple(
        (_unevenly if isinstance(entry, _Tensor) else _evenly)(input, axis, entry, edge_order)
        for axis, entry in zip(axes, spacings)
    )
