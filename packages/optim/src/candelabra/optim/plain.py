"""Base class of the optimizers that are built from ordinary operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor, enable_grad

from .stepping import SteppedOptimizer, as_real, recording


class PlainOptimizer(SteppedOptimizer):
    """An optimizer defined by the initial state of a parameter and the update of one parameter.

    Complex parameters are stepped as pairs of real numbers. The step of a ``differentiable`` group
    is recorded by autograd. Gradients then flow to the parameters' gradients and to tensor options.
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient.

        Parameters
        ----------
        closure
            Called first. It computes the loss and the gradients, and returns the loss.

        Returns
        -------
        Any
            The value that `closure` returned, or None without a closure.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            active = [parameter for parameter in group["params"] if parameter.grad is not None]
            for parameter in active:
                self._check(parameter)
            with recording(group):
                if group.get("differentiable"):
                    self._fresh_states(active)
                for parameter in active:
                    self._step_one(group, parameter)
        return loss

    def _step_one(self, group: dict[str, Any], parameter: Tensor) -> None:
        state = self.state[parameter]
        if not state:
            state.update(self._new_state(group, parameter.detach()))
        grad = parameter.grad
        assert grad is not None
        if parameter.is_complex():
            self._update(group, as_real(parameter), as_real(grad), _RealStates(state))
        else:
            self._update(group, parameter, grad, state)

    def _check(self, parameter: Tensor) -> None:
        """Raise if the parameter cannot be stepped."""

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        """Return the state of a parameter before its first step."""
        raise NotImplementedError(f"{type(self).__name__} defines no _new_state()")

    def _update(self, group: dict[str, Any], parameter: Tensor, grad: Tensor, state: Any) -> None:
        """Take one step of one parameter in place."""
        raise NotImplementedError(f"{type(self).__name__} defines no _update()")


class _RealStates:
    """State of a complex parameter whose tensors are returned as real views."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def __getitem__(self, name: str) -> Any:
        value = self._state[name]
        return as_real(value) if isinstance(value, Tensor) else value

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            raise TypeError("tensors of a state are changed in place")
        self._state[name] = value


def directed(grad: Tensor, parameter: Tensor, maximize: bool, weight_decay: float) -> Tensor:
    """Return the descent gradient with the weight decay added to it."""
    if maximize:
        grad = -grad
    return grad.add(parameter, alpha=weight_decay) if weight_decay != 0 else grad
