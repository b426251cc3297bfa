"""`LRScheduler`, what every schedule is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from candelabra import Tensor, no_grad

from ..optimizer import Optimizer

EPOCH_DEPRECATION = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use `scheduler.step()` to "
    "step the scheduler. During the deprecation, if epoch is different from None, the closed form is used instead of the new chainable "
    "form, where available."
)


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor is filled, so that whoever holds it sees the
    change.
    """
    current = group.get(name)
    if isinstance(current, Tensor):
        with no_grad():
            current.fill_(float(value))
    else:
        group[name] = float(value) if isinstance(value, Tensor) else value


def copied(value: Any) -> Any:
    """An option as it is now: a copy where it is a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def per_group(name: str, values: Any, optimizer: Optimizer) -> list[Any]:
    """One value a group: a sequence of them, or one for all.

    Raises
    ------
    ValueError
        When there are not as many as groups.
    """
    count = len(optimizer.param_groups)
    if not isinstance(values, list | tuple):
        return [values] * count
    if len(values) != count:
        raise ValueError(f"Expected {count} {name}, but got {len(values)}")
    return list(values)


class LRScheduler:
    """Base of all schedules: after each step it sets the option ``lr`` of every group of an
    optimizer.

    A subclass defines `get_lr`, which computes the rates of step number `last_epoch`, usually from
    those that are set now; one step is done on construction. `last_epoch` says where to go on, -1
    being the start.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=1.0)
    >>> schedule = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    last_epoch: int
    base_lrs: list[Any]
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with last_epoch >= 0"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_is_initial")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rates that were set last, one a group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the rates of step number `last_epoch`, one a group."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _lrs(self) -> list[Any]:
        """The rates that are set now."""
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _warn_order(self) -> None:
        if not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
                "`optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the first value of the "
                "learning rate schedule.",
                UserWarning,
                stacklevel=4,
            )

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next step, or to step number `epoch` (deprecated)."""
        if self._step_count == 1:
            self._warn_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION, UserWarning, stacklevel=2)
        self._advance(epoch)

    def _advance(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = closed() if closed is not None else self.get_lr()
        finally:
            del self._get_lr_called_within_step
        self._set(rates)

    def _set(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = self._lrs()


__all__ = ["LRScheduler"]
