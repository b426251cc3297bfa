"""Cyclic schedules of the learning rate and the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, copied, per_group, set_option


def _cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


def _linear(start: float, end: float, done: float) -> float:
    return (end - start) * done + start


class OneCycleLR(LRScheduler):
    """The 1cycle policy: the rate rises to `max_lr`, then falls far below its initial value.

    The momentum is cycled inversely. Call `step` after every batch.

    Parameters
    ----------
    optimizer
        Its option ``momentum`` or ``betas[0]`` is cycled with the rate, unless `cycle_momentum` is
        False.
    max_lr
        Maximum rate, one for all groups or one per group.
    total_steps
        Number of steps. Defaults to the product of `epochs` and `steps_per_epoch`.
    pct_start
        Fraction of the steps in which the rate rises.
    anneal_strategy
        ``"cos"`` or ``"linear"``.
    base_momentum, max_momentum
        Momentum at the maximum rate, and momentum at the start and the end.
    div_factor, final_div_factor
        The initial rate is ``max_lr / div_factor``; the final one is that divided by
        `final_div_factor`.
    three_phase
        Whether a second phase brings the rate back to its initial value before the final decay.

    Raises
    ------
    ValueError
        If an option is out of range, or `step` is called after the last step.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=0.1, momentum=0.9)
    >>> schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> round(schedule.get_last_lr()[0], 6), optimizer.param_groups[0]["momentum"]
    (0.04, 0.95)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            if not isinstance(epochs, int) or epochs <= 0:
                raise ValueError(f"Expected positive integer epochs, but got {epochs}")
            if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
                raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        up = float(pct_start * self.total_steps) - 1
        lr, momentum = ("initial_lr", "max_lr", "min_lr"), ("base_momentum", "max_momentum")
        # Each phase: its last step, its start and end rate, and its start and end momentum.
        if three_phase:
            down = float(2 * pct_start * self.total_steps) - 2
            phases = [(up, lr[0], lr[1], momentum[1], momentum[0]), (down, lr[1], lr[0], momentum[0], momentum[1]),
                      (self.total_steps - 1, lr[0], lr[2], momentum[1], momentum[1])]  # fmt: skip
        else:
            phases = [
                (up, lr[0], lr[1], momentum[1], momentum[0]),
                (self.total_steps - 1, lr[1], lr[2], momentum[0], momentum[1]),
            ]
        self._schedule_phases: list[dict[str, Any]] = [
            {
                "end_step": end,
                "start_lr": start_lr,
                "end_lr": end_lr,
                "start_momentum": start_momentum,
                "end_momentum": end_momentum,
            }
            for end, start_lr, end_lr, start_momentum, end_momentum in phases
        ]
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, per_group("max_lr", max_lr, optimizer), strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _has_betas(optimizer)
            if last_epoch == -1:
                tops = per_group("max_momentum", max_momentum, optimizer)
                bottoms = per_group("base_momentum", base_momentum, optimizer)
                for group, top, bottom in zip(optimizer.param_groups, tops, bottoms, strict=True):
                    _set_momentum(group, copied(top), self.use_beta1)
                    group["max_momentum"] = top
                    group["base_momentum"] = bottom
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        anneal = _cosine if self._anneal_func_type == "cos" else _linear
        begin = 0.0
        for number, phase in enumerate(self._schedule_phases):
            end: Any = phase["end_step"]
            if step <= end or number == len(self._schedule_phases) - 1:
                break
            begin = end
        done = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                momentum = anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], done)
                _set_momentum(group, momentum, self.use_beta1)
        return rates


def _has_betas(optimizer: Optimizer) -> bool:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], momentum: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        set_option(group, "momentum", momentum)


class CyclicLR(LRScheduler):
    """Cyclical rates between `base_lr` and `max_lr`, with the momentum cycled inversely.

    Call `step` after every batch. `mode` is ``"triangular"``, ``"triangular2"`` (each cycle has
    half the amplitude) or ``"exp_range"`` (amplitude times ``gamma ^ t``). A custom `scale_fn`
    takes the cycle number, or the step with ``scale_mode="iterations"``. Source: Smith, 2015.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_option(group, "lr", rate)
        self.max_lrs = per_group("max_lr", max_lr, optimizer)
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(step_size_down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _has_betas(optimizer)
            self.base_momentums = per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                for group, top, bottom in zip(
                    optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True
                ):
                    _set_momentum(group, copied(top), self.use_beta1)
                    group["max_momentum"] = top
                    group["base_momentum"] = bottom
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the amplitude scale at cycle or step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = height * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [base + (top - base) * scale for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]
        if self.cycle_momentum:
            for group, bottom, top in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, top - (top - bottom) * scale, self.use_beta1)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer, and the attributes of a custom `scale_fn`."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = (
            dict(custom.__dict__) if custom is not None and getattr(custom, "__dict__", None) else None
        )
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; a custom `scale_fn` keeps its identity."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(state)


__all__ = ["CyclicLR", "OneCycleLR"]
