"""Helpers shared by the optimizers: step counts, option checks and recorded steps."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import candelabra
from candelabra import Tensor, enable_grad, no_grad

from .optimizer import Optimizer


class SteppedOptimizer(Optimizer):
    """An optimizer that counts steps in Python numbers.

    State dicts contain the counts as one-element tensors, as in PyTorch.
    """

    #: Entries of a parameter's state that are Python numbers here and tensors in a state dict.
    _numbers: tuple[str, ...] = ("step",)

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        check_options(type(self).__name__, defaults)
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The base class adds an option to the defaults that not every optimizer has.
        known = state if "defaults" in state else self.__dict__
        defaults = dict(known["defaults"])
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in defaults.items():
                group.setdefault(name, default)
            if group.get("capturable"):
                group["capturable"] = False  # from a captured PyTorch run; no effect
            check_options(type(self).__name__, group)
        for parameter_state in self.state.values():
            for name in self._numbers:
                if name in parameter_state:
                    value = float(parameter_state[name])
                    parameter_state[name] = int(value) if name == "step" else value

    def _state_out(self, state: Any) -> Any:
        if not any(name in state for name in self._numbers):
            return state
        device = next((value.device for value in state.values() if isinstance(value, Tensor)), None)
        wide = candelabra.get_default_dtype() == candelabra.float64 and not self.defaults.get("fused")
        # Step counts have PyTorch's dtype. Other numbers are saved in float64, without rounding.
        dtypes = dict.fromkeys(self._numbers, candelabra.float64)
        dtypes["step"] = candelabra.float64 if wide else candelabra.float32
        return {
            name: candelabra.tensor(float(value), dtype=dtypes[name], device=device) if name in self._numbers else value
            for name, value in state.items()
        }

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        check_options(type(self).__name__, self.param_groups[-1])

    def _fresh_states(self, params: list[Tensor]) -> None:
        """Replace the states by recorded copies.

        Earlier steps may have saved the state tensors for backward, so they must not change in
        place.
        """
        for parameter in params:
            state = self.state.get(parameter, {})
            for name, value in state.items():
                if isinstance(value, Tensor):
                    state[name] = value.clone()


def recording(group: dict[str, Any]) -> AbstractContextManager[Any]:
    """Return the grad mode for a step of a group: enabled if the group is ``differentiable``."""
    return enable_grad() if group.get("differentiable") else no_grad()


def number(value: Any, group: dict[str, Any]) -> Any:
    """Return an option as a number, or as a tensor if gradients have to flow to it."""
    if isinstance(value, Tensor):
        return value.squeeze() if group.get("differentiable") and value.requires_grad else float(value)
    return value


def add_scaled_(parameter: Tensor, update: Tensor, scale: Any) -> Tensor:
    """Add ``scale * update`` to a parameter; the scale is a number or a one-element tensor."""
    return parameter.add_(update * scale) if isinstance(scale, Tensor) else parameter.add_(update, alpha=scale)


def add_quotient_(parameter: Tensor, above: Tensor, below: Tensor, scale: Any) -> Tensor:
    """Add ``scale * above / below`` to a parameter.

    The scale is a number or a one-element tensor.
    """
    return (
        parameter.addcdiv_(above * scale, below)
        if isinstance(scale, Tensor)
        else parameter.addcdiv_(above, below, value=scale)
    )


def as_real(tensor: Tensor) -> Tensor:
    """Return a complex tensor as a real view with one more dimension; a real one unchanged."""
    return candelabra.view_as_real(tensor) if tensor.is_complex() else tensor


def check_options(name: str, options: dict[str, Any]) -> None:
    """Raise for options that are not supported and for options that exclude each other."""
    if options.get("differentiable") and options.get("fused"):
        raise RuntimeError("`fused` does not support `differentiable`")
    if options.get("capturable"):
        raise RuntimeError(
            f"{name}: capturable=True is not supported, as steps are not captured in graphs; leave it out"
        )
    if options.get("fused") and options.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_lr(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """Raise if a learning rate is negative or a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not float(lr) >= 0.0:
        raise ValueError(message.format(lr))


def check_adam_options(lr: Any, betas: Any, eps: float, weight_decay: float) -> None:
    """Raise if an option of an Adam variant is out of range."""
    check_lr(lr)
    if not eps >= 0.0:
        raise ValueError(f"Invalid epsilon value: {eps}")
    for place in (0, 1):
        if not 0.0 <= betas[place] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {place}: {betas[place]}")
    if not weight_decay >= 0.0:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")
