"""L-BFGS: a quasi-Newton method with limited memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor, enable_grad, no_grad

from .line_search import Point, strong_wolfe
from .optimizer import Optimizer
from .stepping import as_real, check_lr


class LBFGS(Optimizer):
    """L-BFGS: descent along the gradient times an inverse Hessian estimated from recent steps.

    One step runs up to `max_iter` iterations and calls the closure in each. The two-loop recursion
    computes the direction. A pair of vectors enters the history if its curvature is above 1e-10.
    Sources: Nocedal, 1980; Nocedal and Wright, 2006, algorithm 7.4.

    Parameters
    ----------
    params
        Tensors, or a single dict that describes one group.
    lr
        Step length along the direction. With a line search, the first length tried.
    max_iter, max_eval
        Upper limits on iterations and closure calls per step. `max_eval` defaults to 1.25 times
        `max_iter`.
    tolerance_grad
        The step ends when no entry of the gradient is larger than this.
    tolerance_change
        The step ends when the loss, or every entry of the parameters, changes by less than this.
    history_size
        Maximum number of vector pairs in the history.
    line_search_fn
        ``"strong_wolfe"`` or None.

    Raises
    ------
    ValueError
        If there are several groups or the rate is negative.
    RuntimeError
        If `line_search_fn` is another value; raised in `step`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.tensor([3.0, -4.0])
    >>> def closure():
    ...     weight.grad = 2 * (weight - 1) * candelabra.tensor([1.0, 10.0])
    ...     return ((weight - 1) ** 2 * candelabra.tensor([1.0, 10.0])).sum()
    >>> optimizer = optim.LBFGS([weight], line_search_fn="strong_wolfe")
    >>> first = optimizer.step(closure)
    >>> weight
    tensor([1., 1.])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        if len(self.param_groups) != 1:
            self.param_groups.pop()
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        params: list[Tensor] = self.param_groups[0]["params"]
        return params

    def _gradient(self) -> Tensor:
        """Return the gradients of all parameters, flattened and concatenated."""
        rows = []
        for parameter in self._params:
            grad = parameter.grad
            rows.append(as_real(candelabra.zeros_like(parameter) if grad is None else grad).reshape(-1))
        return candelabra.cat(rows)

    def _move(self, distance: Any, direction: Tensor) -> None:
        offset = 0
        for parameter in self._params:
            real = as_real(parameter)
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=float(distance))
            offset += count

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to `max_iter` iterations.

        Parameters
        ----------
        closure
            Clears the gradients, recomputes the loss and the gradients, and returns the loss. It is
            called several times.

        Returns
        -------
        Any
            The value of the first call of `closure`.
        """

        def evaluated() -> Any:
            with enable_grad():
                return closure()

        with no_grad():
            return self._iterate(evaluated)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, max_iter, max_eval = float(group["lr"]), group["max_iter"], group["max_eval"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        search = group["line_search_fn"]
        # The state shared by all parameters is stored with the first one, so that state dicts
        # contain it.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._gradient()
        if not grad.numel() or float(grad.abs().max()) <= tolerance_grad:
            return first_loss

        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            kept = state.get("prev_flat_grad")
            if kept is None:
                state["prev_flat_grad"] = grad.clone()
            else:
                kept.copy_(grad)
            state["prev_loss"] = before = loss
            state["t"] = lr
            if state["n_iter"] == 1:
                total = float(grad.abs().sum())
                state["t"] = lr / max(1.0, total)
            slope = float(grad.dot(direction))
            if slope > -tolerance_change:
                break
            used = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                point, used = self._search(
                    closure,
                    direction,
                    Point(0.0, loss, grad, slope),
                    state["t"],
                    max_eval - evaluations,
                    tolerance_change,
                )
                loss, grad, state["t"] = point.loss, point.grad, point.t
                self._move(point.t, direction)
            else:
                self._move(state["t"], direction)
                if iteration != max_iter:  # the result of the last evaluation would not be used
                    loss, used = float(closure()), 1
                    grad = self._gradient()
            evaluations += used
            state["func_evals"] += used
            if evaluations >= max_eval or (used and float(grad.abs().max()) <= tolerance_grad):
                break
            if float(direction.abs().max()) * state["t"] <= tolerance_change or abs(loss - before) < tolerance_change:
                break
        return first_loss

    def _direction(self, state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
        """Add the last step to the history, and return the search direction."""
        if state["n_iter"] == 1:
            state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            first: Tensor = state["d"]
            return first
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change = grad.sub(state["prev_flat_grad"])
        step = state["d"].mul(float(state["t"]))
        curvature = change.dot(step)
        if float(curvature) > 1e-10:
            if len(changes) == history_size:
                for memory in (changes, steps, inverses):
                    memory.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        q = grad.neg()
        shares = state.setdefault("al", [None] * history_size)
        for i in reversed(range(len(changes))):
            shares[i] = steps[i].dot(q) * inverses[i]
            q.add_(changes[i], alpha=-float(shares[i]))
        direction = state["d"] = q.mul_(state["H_diag"])
        for i in range(len(changes)):
            direction.add_(steps[i], alpha=float(shares[i] - changes[i].dot(direction) * inverses[i]))
        return direction

    def _search(
        self,
        closure: Callable[[], Any],
        direction: Tensor,
        start: Point,
        t: float,
        max_evaluations: int,
        tolerance_change: float,
    ) -> tuple[Point, int]:
        origin = [parameter.clone() for parameter in self._params]

        def evaluate(distance: float) -> tuple[float, Tensor, float]:
            self._move(distance, direction)
            loss = float(closure())
            grad = self._gradient()
            for parameter, value in zip(self._params, origin, strict=True):
                parameter.copy_(value)
            return loss, grad, float(grad.dot(direction))

        largest = float(direction.abs().max())
        return strong_wolfe(evaluate, start, t, largest, max_evaluations, tolerance_change)


__all__ = ["LBFGS"]
