"""Line search for the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from candelabra import Tensor


class Point(NamedTuple):
    """A point on the search line: distance, loss, gradient, and directional derivative."""

    t: Any
    loss: float
    grad: Tensor
    slope: float


def cubic_minimum(one: Point, two: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimizer of the cubic through two points with their slopes, clamped to `bounds`.

    Returns the midpoint of the bounds if the cubic has no minimum. Source: Nocedal and Wright,
    equation 3.59.
    """
    left, right = (one, two) if one.t <= two.t else (two, one)
    low, high = bounds if bounds is not None else (left.t, right.t)
    d1 = one.slope + two.slope - 3 * (one.loss - two.loss) / (one.t - two.t)
    square = d1 * d1 - one.slope * two.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    below = right.slope - left.slope + 2 * d2
    share = (right.slope + d2 - d1) / below if below else math.inf
    return min(max(right.t - (right.t - left.t) * share, low), high)


def _off_the_margin(t: float, one: float, other: float, stuck: bool) -> tuple[float, bool]:
    """Return a trial distance that makes the bracket shrink, and whether it is near an end.

    A trial distance near an end of the bracket is accepted once. The next one is moved to the
    margin.
    """
    left, right = min(one, other), max(one, other)
    margin = 0.1 * (right - left)
    if not min(right - t, t - left) < margin:
        return t, False
    if stuck or t >= right or t <= left:
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
    return t, True


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor, float]],
    start: Point,
    t: float,
    largest: float,
    max_evaluations: int,
    tolerance_change: float = 1e-9,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> tuple[Point, int]:
    """Search along a line for a point that satisfies the strong Wolfe conditions.

    Parameters
    ----------
    evaluate
        Maps a distance to the loss, the gradient and the slope there.
    start
        The point at distance 0. Its slope is negative.
    t
        The first distance to try.
    largest
        Largest absolute entry of the direction. The search ends when the bracket width times this
        is below `tolerance_change`.
    max_evaluations
        Maximum number of bracketing and zoom iterations.
    tolerance_change
        See `largest`.
    c1, c2
        Constants of the conditions ``loss <= start.loss + c1 t start.slope`` and ``|slope| <= c2
        |start.slope|``.

    Returns
    -------
    Point, int
        The point found, and the number of calls of `evaluate`.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -c2 * start.slope

    point, before = Point(t, *evaluate(t)), start
    evaluations, rounds = 1, 0
    while rounds < max_evaluations:  # bracketing phase: expand until a minimum is bracketed
        if too_high(point) or (rounds > 1 and point.loss >= before.loss):
            break
        if flat(point):
            return point, evaluations
        if point.slope >= 0:
            break
        bounds = (point.t + 0.01 * (point.t - before.t), point.t * 10)
        t = cubic_minimum(before, point, bounds)
        before, point = point, Point(t, *evaluate(t))
        evaluations += 1
        rounds += 1
    else:
        before = start
    low, high = (before, point) if before.loss <= point.loss else (point, before)
    stuck = False
    while rounds < max_evaluations:  # zoom phase
        width = abs(high.t - low.t)
        if width * largest < tolerance_change:
            break
        t = cubic_minimum(low, high)
        t, stuck = _off_the_margin(t, low.t, high.t, stuck)
        point = Point(t, *evaluate(t))
        evaluations += 1
        rounds += 1
        if too_high(point) or point.loss >= low.loss:
            low, high = (low, point) if low.loss <= point.loss else (point, low)
            continue
        if flat(point):
            return point, evaluations
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, evaluations
