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
    """L-BFGS: descent along the gradient times an approximate inverse Hessian, made of the last
    steps.

    A step takes up to `max_iter` iterations and calls the closure in each. Directions come from the
    two-loop recursion; a pair of steps enters the memory where its curvature is above 1e-10.
    Sources: Nocedal, 1980; Nocedal and Wright, 2006, algorithm 7.4.

    Parameters
    ----------
    params
        Tensors, or one dict of a group.
    lr
        How far along the direction one goes, or with a line search the distance tried first.
    max_iter, max_eval
        The most iterations and calls of the closure in a step; `max_eval` is 1.25 times `max_iter`
        where not given.
    tolerance_grad
        The step ends where no entry of the gradient is larger.
    tolerance_change
        The step ends where the loss, or every entry of the parameters, changes by less.
    history_size
        How many pairs of steps are kept.
    line_search_fn
        ``"strong_wolfe"`` or None.

    Raises
    ------
    ValueError
        When there are several groups or the rate is negative.
    RuntimeError
        In `step`, for another line search.

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
        """The gradients of all parameters in one row."""
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
        """Go on for up to `max_iter` iterations.

        Parameters
        ----------
        closure
            Clears the gradients, computes the loss and the gradients anew, and returns the loss.
            Called several times.

        Returns
        -------
        Any
            What `closure` returned the first time.
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
        # What all parameters share stands in the state of the first, so that it is saved and
        # loaded.
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
                state["t"] = min(1.0, 1.0 / float(grad.abs().sum())) * lr
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
                if iteration != max_iter:  # after the last iteration nobody would look at it
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
        """Put the last step into the memory, and return the direction to go."""
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
