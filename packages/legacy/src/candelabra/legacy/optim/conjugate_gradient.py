"""Conjugate gradients with a line search by cubic interpolation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import candelabra
from candelabra import Tensor

from .settings import Opfunc, Table, evaluate, tables


@dataclass
class _Point:
    """A point of the line: its value, its slope, and how far it is from the current one."""

    value: float
    slope: float
    step: float


class _Search:
    """The line search of Rasmussen's minimize.m: extrapolate, then interpolate."""

    def __init__(self, opfunc: Opfunc, x: Tensor, config: Table) -> None:
        self.opfunc = opfunc
        self.x = x
        self.evaluations = 0
        self.gradient = x
        #: How much of the expected decrease is enough, and how much smaller the slope has to be.
        self.decrease = config.get("rho", 0.01)
        self.curvature = config.get("sig", 0.5)
        #: Nearest and farthest new points, as fractions of the bracket and multiples of the step.
        self.nearest = config.get("int", 0.1)
        self.farthest = config.get("ext", 3.0)

    def evaluate(self) -> tuple[float, Tensor]:
        self.evaluations += 1
        value, gradient = evaluate(self.opfunc, self.x)
        # Functions may return the same memory each time.
        self.gradient = gradient.clone()
        return float(value), self.gradient

    def _move(self, direction: Tensor, step: float) -> _Point:
        self.x.add_(direction, alpha=step)
        value, gradient = self.evaluate()
        return _Point(value, float(gradient.dot(direction)), step)

    def run(self, direction: Tensor, start: _Point, step: float, budget: int) -> tuple[bool, float, _Point]:
        """Search along a direction; return whether it succeeded, the step, and the last point."""
        second = self._move(direction, step)
        third = _Point(start.value, start.slope, -step)
        limit = -1.0
        while True:
            while not self._decreases(start, second, step) and budget > 0:
                limit = step
                move = self._interpolate(start, second, third)
                step += move
                second = self._move(direction, move)
                third.step -= move
                budget -= 1
            if not self._decreases(start, second, step):
                return False, step, second
            if second.slope > self.curvature * start.slope:
                return True, step, second
            if budget <= 0:
                return False, step, second
            move = self._extrapolate(second, third, step, limit)
            third = _Point(second.value, second.slope, -move)
            step += move
            second = self._move(direction, move)
            budget -= 1

    def _decreases(self, start: _Point, point: _Point, step: float) -> bool:
        enough = start.value + step * self.decrease * start.slope
        return not (point.value > enough or point.slope > -self.curvature * start.slope)

    def _interpolate(self, start: _Point, second: _Point, third: _Point) -> float:
        width = third.step
        if second.value > start.value:
            # A parabola through two values and a slope.
            move = _divide(0.5 * third.slope * width**2, third.slope * width + second.value - third.value)
            move = width - move
        else:
            a, b = _cubic(second, third)
            move = _divide(_root(b * b - a * second.slope * width**2) - b, a)
        if not math.isfinite(move):
            move = width / 2
        return max(min(move, self.nearest * width), (1 - self.nearest) * width)

    def _extrapolate(self, second: _Point, third: _Point, step: float, limit: float) -> float:
        width = third.step
        a, b = _cubic(second, third)
        move = _divide(-second.slope * width**2, b + _root(b * b - a * second.slope * width**2))
        bounded = limit > -0.5
        if not math.isfinite(move) or move < 0:
            return (limit - step) / 2 if bounded else step * (self.farthest - 1)
        if bounded and step + move > limit:
            return (limit - step) / 2
        if not bounded and step + move > step * self.farthest:
            return step * (self.farthest - 1)
        if move < -width * self.nearest:
            return -width * self.nearest
        if bounded and move < (limit - step) * (1 - self.nearest):
            return (limit - step) * (1 - self.nearest)
        return move


def _cubic(second: _Point, third: _Point) -> tuple[float, float]:
    """Return the coefficients of the cubic through two points with their slopes."""
    difference = second.value - third.value
    a = _divide(6 * difference, third.step) + 3 * (second.slope + third.slope)
    return a, -3 * difference - third.step * (third.slope + 2 * second.slope)


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _divide(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator != 0 else math.nan


@candelabra.no_grad()
def cg(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[float], int]:
    """Minimize by conjugate gradients, with the directions of Polack and Ribiere.

    Parameters
    ----------
    opfunc
        Returns the value of the function and its gradient at a point.
    x
        The point, which is changed in place.
    config
        ``maxIter`` (20), the most evaluations in one line search; ``maxEval`` (1.25 times as many),
        the most evaluations in all; ``rho`` (0.01), ``sig`` (0.5), ``int`` (0.1), ``ext`` (3) and
        ``ratio`` (100), the constants of the line search.
    state
        Not needed: each call begins anew.

    Returns
    -------
    x : Tensor
        The point.
    values : list of float
        The values before the first and after each successful line search.
    evaluations : int
        How often the function was evaluated.
    """
    settings, _ = tables(config, state)
    most_searched = settings.get("maxIter", 20)
    most = settings.get("maxEval", most_searched * 1.25)
    search = _Search(opfunc, x, settings)
    value, gradient = search.evaluate()
    values = [value]
    direction = -gradient
    slope = -float(direction.dot(direction))
    step = 1 / (1 - slope)
    failed = False
    while search.evaluations < abs(most):
        origin = x.clone()
        budget = int(min(most_searched, most - search.evaluations - 1))
        success, step, found = search.run(direction, _Point(value, slope, 0.0), step, budget)
        if success:
            value = found.value
            values.append(value)
            direction, new_slope = _next_direction(direction, gradient, search.gradient)
            gradient = search.gradient
            step *= min(settings.get("ratio", 100), slope / (new_slope - 1e-320))
            slope, failed = new_slope, False
            continue
        x.copy_(origin)
        if failed or search.evaluations > abs(most):
            break
        # The steepest descent from the origin, as in later versions of minimize.m.
        direction = -gradient
        slope = -float(direction.dot(direction))
        step = 1 / (1 - slope)
        failed = True
    return x, values, search.evaluations


def _next_direction(direction: Tensor, old: Tensor, new: Tensor) -> tuple[Tensor, Any]:
    """Return the conjugate direction and its slope; the steepest descent where it would ascend."""
    factor = _divide(float(new.dot(new) - new.dot(old)), float(old.dot(old)))
    direction = direction * factor - new if math.isfinite(factor) else -new
    slope = float(new.dot(direction))
    if slope > 0:
        return -new, -float(new.dot(new))
    return direction, slope
