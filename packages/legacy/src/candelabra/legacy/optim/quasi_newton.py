"""The quasi-Newton method with limited memory."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .settings import Opfunc, Table, evaluate, tables


def _direction(gradient: Tensor, state: Table, most: int) -> Tensor:
    """Return the direction of the next step, after remembering the last one."""
    if state["nIter"] == 1:
        state.update(old_dirs=[], old_stps=[], Hdiag=1)
        return -gradient
    change = gradient - state["g_old"]
    step = state["d"] * state["t"]
    curvature = float(change.dot(step))
    steps, changes = state["old_dirs"], state["old_stps"]
    if curvature > 1e-10:
        if len(steps) == most:
            steps.pop(0)
            changes.pop(0)
        steps.append(step)
        changes.append(change)
        state["Hdiag"] = curvature / float(change.dot(change))
    direction = -gradient
    factors = []
    for old_step, old_change in zip(reversed(steps), reversed(changes)):
        factor = float(old_step.dot(direction)) / float(old_change.dot(old_step))
        direction.add_(old_change, alpha=-factor)
        factors.append(factor)
    direction.mul_(state["Hdiag"])
    for old_step, old_change, factor in zip(steps, changes, reversed(factors)):
        back = float(old_change.dot(direction)) / float(old_change.dot(old_step))
        direction.add_(old_step, alpha=factor - back)
    return direction


@candelabra.no_grad()
def lbfgs(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any], int]:
    """Minimize by the quasi-Newton method with limited memory.

    Parameters
    ----------
    opfunc
        Returns the value of the function and its gradient at a point.
    x
        The point, which is changed in place.
    config
        ``maxIter`` (20), ``maxEval`` (1.25 times as many), ``tolFun`` (1e-5), ``tolX`` (1e-9),
        ``nCorrection`` (100), the steps that are remembered; ``learningRate`` (1), the length of
        steps; ``lineSearch``, a function, and ``lineSearchOptions``. The function is called with
        ``opfunc, x, t, d, f, g, gtd, options`` and returns ``f, g, x, t, evaluations``: ``t`` is
        the first length, ``d`` the direction, ``gtd`` the slope.
    state
        Kept between calls; by default the config.

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's values: before the first step, and at each point that was evaluated since.
    evaluations : int
        How often the function was evaluated.
    """
    settings, memory = tables(config, state)
    iterations = settings.get("maxIter", 20)
    most = settings.get("maxEval", iterations * 1.25)
    tol_fun, tol_x = settings.get("tolFun", 1e-5), settings.get("tolX", 1e-9)
    rate, search = settings.get("learningRate", 1), settings.get("lineSearch")
    f, gradient = _evaluate(opfunc, x)
    values, evaluations = [f], 1
    if float(gradient.abs().sum()) > tol_fun:
        for iteration in range(1, iterations + 1):
            memory["nIter"] = memory.get("nIter", 0) + 1
            direction = _direction(gradient, memory, settings.get("nCorrection", 100))
            t = rate * min(1.0, 1 / float(gradient.abs().sum())) if memory["nIter"] == 1 else rate
            slope = float(gradient.dot(direction))
            memory.update(g_old=gradient, f_old=f)
            if search is not None:
                options = settings.get("lineSearchOptions")
                f, gradient, moved, t, count = search(opfunc, x, t, direction, f, gradient, slope, options)
                x.copy_(moved)
                gradient = gradient.clone()
            else:
                x.add_(direction, alpha=t)
                count = 0
                # The last point is not evaluated: nothing would use it.
                if iteration != iterations:
                    f, gradient = _evaluate(opfunc, x)
                    count = 1
            if search is not None or count:
                values.append(f)
            evaluations += count
            memory.update(d=direction, t=t)
            if (
                iteration == iterations
                or evaluations >= most
                or float(gradient.abs().sum()) <= tol_fun
                or slope > -tol_x
                or float((direction * t).abs().sum()) <= tol_x
                or abs(float(f) - float(memory["f_old"])) < tol_x
            ):
                break
    memory["funcEval"] = memory.get("funcEval", 0) + evaluations
    return x, values, evaluations


def _evaluate(opfunc: Opfunc, x: Tensor) -> tuple[Any, Tensor]:
    # Functions may return the same memory each time.
    f, gradient = evaluate(opfunc, x)
    return f, gradient.clone()
