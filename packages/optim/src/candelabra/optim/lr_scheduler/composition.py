"""Schedules that combine other schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, copied, set_option


class _Composition(LRScheduler):
    """A schedule made of other schedules of the same optimizer."""

    _schedulers: list[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{type(self).__name__} at index {number} should have `optimizer` as its attribute.")
            if type(scheduler).__name__ == "ReduceLROnPlateau":
                raise ValueError(
                    f"{type(self).__name__} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                    f"when calling `step`, but got one at index {number} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {number} has {scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer, with the state dicts of the schedules."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        state = dict(state_dict)
        saved = state.pop("_schedulers")
        self.__dict__.update(state)
        for scheduler, below in zip(self._schedulers, saved, strict=True):
            scheduler.load_state_dict(below)

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{', '.join(map(repr, self._schedulers))}])"


class SequentialLR(_Composition):
    """Schedules that run one after another; each but the first starts at one of `milestones`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> from candelabra.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=1.0)
    >>> schedule = SequentialLR(
    ...     optimizer, [ConstantLR(optimizer, 0.1, total_iters=2), ExponentialLR(optimizer, 0.5)], milestones=[2]
    ... )
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule took its initial step in its constructor. Undo them all, then repeat the
        # step of the first schedule.
        for group in optimizer.param_groups:
            set_option(group, "lr", copied(group["initial_lr"]))
        for scheduler in schedulers:
            _step_back(scheduler)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def _initial_step(self) -> None:
        self.last_epoch += 1
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Decrement the step count of all schedules within `sched`, which defaults to this one."""
        chosen = self if sched is None else sched
        if hasattr(chosen, "_schedulers"):
            for below in chosen._schedulers:
                self.recursive_undo(below)
        elif hasattr(chosen, "last_epoch"):
            chosen.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next step with the schedule that is active at it."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            _restart(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _step_back(scheduler: LRScheduler) -> None:
    if isinstance(scheduler, _Composition):
        for below in scheduler._schedulers:
            _step_back(below)
    if not isinstance(scheduler, ChainedScheduler):  # it counts no steps of its own
        scheduler.last_epoch -= 1


def _restart(scheduler: LRScheduler) -> None:
    """Reset a schedule to step 0 and its initial rate."""
    if isinstance(scheduler, ChainedScheduler):
        raise NotImplementedError(
            "ChainedScheduler cannot follow another schedule in SequentialLR; it can only be the first"
        )
    if isinstance(scheduler, SequentialLR):  # not stepped since its constructor's step was undone
        rates = [group["initial_lr"] for group in scheduler.optimizer.param_groups]
    else:
        scheduler.last_epoch = -1
        rates = scheduler.base_lrs
    for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
        set_option(group, "lr", copied(rate))
    scheduler._initial_step()


class ChainedScheduler(_Composition):
    """Several schedules stepped together; each changes the rates that the previous one set.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> from candelabra.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=1.0)
    >>> schedule = ChainedScheduler([ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.5)])
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._check(schedulers, optimizer or (schedulers[0].optimizer if schedulers else None))
        self._schedulers = list(schedulers)
        self.optimizer = schedulers[0].optimizer
        self._last_lr = self._lrs()

    def _initial_step(self) -> None:
        self.step()

    def step(self) -> None:  # type: ignore[override]
        """Step all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._lrs()


__all__ = ["ChainedScheduler", "SequentialLR"]
