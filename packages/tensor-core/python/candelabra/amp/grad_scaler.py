"""Losses scaled up, so that gradients in float16 do not vanish, and gradients scaled down again
before a step.

Source: Micikevicius et al., "Mixed precision training", 2017, section 3.2.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from enum import Enum

import candelabra
from candelabra import _C, backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


class OptState(Enum):
    """What was done with an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf": None}


class GradScaler:
    """Scales losses by a factor that grows while gradients stay finite and shrinks when they do
    not, and leaves out steps with infinite gradients.

    ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()`` take the
    place of ``loss.backward()`` and ``optimizer.step()``. To look at gradients in between,
    `unscale_` them first.

    Parameters
    ----------
    device : str
        Where gradients lie; where there is no such backend nothing is scaled, and a warning says
        so.
    init_scale : float
        The first factor.
    growth_factor : float
        Above 1: what the factor is multiplied by after `growth_interval` updates in a row without
        infinite gradients.
    backoff_factor : float
        Below 1: what the factor is multiplied by after infinite gradients.
    growth_interval : int
        See `growth_factor`.
    enabled : bool
        False lets everything through unchanged.

    Raises
    ------
    AssertionError
        If a factor is out of range.

    Examples
    --------
    >>> import candelabra
    >>> scaler = candelabra.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(candelabra.tensor(2.0))
    tensor(16.)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and not backends.is_available(device):
            _C.warn(f"GradScaler is enabled, but {device.upper()} is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._used = False
        self._states: dict[int, dict[str, Any]] = defaultdict(_fresh)

    # ---- the loss

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or all in nested lists and tuples, by the factor."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, _C.Tensor):
            return outputs * candelabra.tensor(self._scale, dtype=candelabra.float32, device=outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(entry) for entry in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    # ---- the gradients

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, once before its step.

        Raises
        ------
        RuntimeError
            If this was done before, or after the step.
        ValueError
            If gradients are float16: keep parameters in float32 and autocast.
        """
        if not self._enabled:
            return
        self._check_used("unscale_")
        state = self._states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf"] = self._unscale(optimizer, allow_half=False)
        state["stage"] = OptState.UNSCALED

    def _unscale(self, optimizer: Any, allow_half: bool) -> bool | None:
        """Divide all gradients, and tell whether one was not finite; None where there are none."""
        grads = [
            parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if not allow_half and any(grad.dtype == candelabra.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        inverse = 1.0 / self._scale
        infinite = False
        with candelabra.no_grad():
            for grad in grads:
                infinite = infinite or not bool(candelabra.isfinite(grad).all())
                grad.mul_(inverse)
        return infinite if grads else None

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Divide the gradients where that was not done, and take a step if all are finite.

        Returns
        -------
        Any
            What the step returned; None where it was left out.

        Raises
        ------
        RuntimeError
            If a closure is given, or a step was taken since the last update.
        AssertionError
            If no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_used("step")
        state = self._states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_its_own(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if state["found_inf"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_its_own(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Step an optimizer that scales its gradients itself: it finds the factor and whether all
        was finite among its attributes.
        """
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            kwargs = {**kwargs, "grad_scaler": self}
        scaled = state["stage"] is OptState.READY
        if scaled:
            grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            state["found_inf"] = any(not bool(candelabra.isfinite(grad).all()) for grad in grads) if grads else None
        optimizer.grad_scale = candelabra.tensor(self._scale) if scaled else None
        optimizer.found_inf = candelabra.tensor(float(bool(state["found_inf"])))
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale
            del optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    # ---- the factor

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Make the factor larger or smaller by what the gradients were like, or set it."""
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise AssertionError(
                    "new_scale should be a float or a 1-element float tensor with requires_grad=False."
                )
            self._scale = float(new_scale)
        else:
            found = [state["found_inf"] for state in self._states.values() if state["found_inf"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    if grown < candelabra.finfo(candelabra.float32).max:
                        self._scale = grown
                    self._growth_tracker = 0
        self._states = defaultdict(_fresh)

    def _check_used(self, what: str) -> None:
        if not self._used:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
                "iteration: the scaler has not scaled anything yet."
            )

    def get_scale(self) -> float:
        """Give the factor; 1 where the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Give the factor of growth."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor of growth."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Give the factor after infinite gradients."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor after infinite gradients."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Give the number of updates in a row after which the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of updates in a row after which the factor grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether anything is scaled."""
        return self._enabled

    # ---- saving

    def state_dict(self) -> dict[str, Any]:
        """Give the factor and what it grows by; nothing where the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave, of this library or of PyTorch."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = int(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and len(self._states) != 0:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
            )
        return {name: value for name, value in self.__dict__.items() if name != "_states"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._states = defaultdict(_fresh)
