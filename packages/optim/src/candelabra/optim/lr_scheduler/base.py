"""`LRScheduler`, the base class of learning-rate schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import _C, Tensor, no_grad

from ..optimizer import Optimizer

EPOCH_DEPRECATION = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use `scheduler.step()` to "
    "step the scheduler. During the deprecation, if epoch is different from None, the closed form is used instead of the new chainable "
    "form, where available."
)


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group.

    A tensor option is filled in place, so that its other owners see the change.
    """
    current = group.get(name)
    if isinstance(current, Tensor):
        with no_grad():
            current.fill_(float(value))
    else:
        group[name] = float(value) if isinstance(value, Tensor) else value


def copied(value: Any) -> Any:
    """Return a copy of a tensor option, and any other option unchanged."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def per_group(name: str, values: Any, optimizer: Optimizer) -> list[Any]:
    """Return one value per group from a sequence, or repeat a single value. Tensors are copied.

    Raises
    ------
    ValueError
        If the number of values differs from the number of groups.
    """
    count = len(optimizer.param_groups)
    if not isinstance(values, list | tuple):
        return [copied(values) for _ in range(count)]
    if len(values) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)} values, param_groups has {count}."
        )
    return [copied(value) for value in values]


class LRScheduler:
    """Base class of schedules, which set the option ``lr`` of every group of an optimizer.

    A subclass defines `get_lr`, which computes the rates of step `last_epoch`, usually from the
    current rates. The constructor takes the initial step. Pass `last_epoch` to resume a schedule;
    -1 starts a new one.

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
        """Return all attributes except the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_is_initial")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        self.__dict__.update(state_dict)

    def __repr__(self) -> str:
        shown: dict[str, Any] = {
            name: value for name, value in vars(self).items() if isinstance(value, bool | int | float | str)
        }
        shown |= {"lr": [float(rate) for rate in self._last_lr]}
        options = (f"{name}={value!r}" for name, value in shown.items() if name[0] != "_")
        return f"{type(self).__name__}({', '.join(options)})"

    def get_last_lr(self) -> list[Any]:
        """Return the rates that were set last, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the rates of step `last_epoch`, one per group."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            _C.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            )

    def _lrs(self) -> list[Any]:
        """Return the current rates."""
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _warn_order(self) -> None:
        if not getattr(self.optimizer, "_opt_called", False):
            _C.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
                "`optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the first value of the "
                "learning rate schedule. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
            )

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next step, or to step `epoch` (deprecated)."""
        if self._step_count == 1:
            self._warn_order()
        self._step_count += 1
        if epoch is not None:
            _C.warn(EPOCH_DEPRECATION)
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
