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

from .unscaling import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


class OptState(Enum):
    """What was done with an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


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
        self._init_scale = init_scale
        #: The factor, and the number of updates since it changed; tensors after the first `scale`.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {funcname} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier "
                "in the iteration: the scaler has not scaled anything yet."
            )
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = candelabra.full((), self._init_scale, dtype=candelabra.float32, device=dev)
        self._growth_tracker = candelabra.full((), self._init_growth_tracker, dtype=candelabra.int32, device=dev)

    # ---- the loss

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or all in nested lists and tuples, by the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            scale, _ = self._check_scale_growth_tracker("scale")
            return outputs * scale.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = map(self.scale, outputs)
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
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
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal of a large factor is exact only in float64.
        inverse = scale.double().reciprocal().float()
        found = candelabra.zeros((), dtype=candelabra.float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply all gradients by a factor; return by device whether one was not finite, and
        nothing where there are no gradients.
        """
        by_device: dict[Any, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype == candelabra.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device[grad.device].append(grad)
        found_by_device = {}
        for device, grads in by_device.items():
            found_by_device[device] = found_inf.to(device=device, copy=True)
            _amp_foreach_non_finite_check_and_unscale_(grads, found_by_device[device], inv_scale.to(device))
        return found_by_device

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Search the gradients for infinite values, and leave them as they are."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = candelabra.ones((), dtype=candelabra.float32, device=scale.device)
        found = candelabra.zeros((), dtype=candelabra.float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, found, allow_fp16=True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

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
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_its_own(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if len(state["found_inf_per_device"]) == 0:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Take a step if all gradients are finite."""
        if any(bool(found) for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_its_own(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Step an optimizer that scales its gradients itself: it finds the factor and whether all
        was finite among its attributes, or asks the scaler that it gets as an argument.
        """
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            _C.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler "
                "registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        scale, _ = self._check_scale_growth_tracker("step")
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        else:
            optimizer.grad_scale = None
        found = [one.to(scale.device, non_blocking=True) for one in state["found_inf_per_device"].values()]
        optimizer.found_inf = sum(found[1:], found[0]) if found else candelabra.zeros((), device=scale.device)
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
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, _C.Tensor):
            if new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element float tensor with requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(new_scale)
        else:
            found = [
                one.to(device=scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for one in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            combined = sum(found[1:], found[0])
            _amp_update_scale_(
                scale, tracker, combined, self._growth_factor, self._backoff_factor, self._growth_interval
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)

    def get_scale(self) -> float:
        """Give the factor; 1 where the scaler is not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

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
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave, of this library or of PyTorch."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = int(state_dict["_growth_tracker"])
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if len(self._per_optimizer_states) != 0:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
                )
            # Tensors of a device are not part of the state: they are made at the next `scale`.
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
