"""A schedule that reacts to a metric."""

from __future__ import annotations

import math
from typing import Any

from candelabra import _C

from ..optimizer import Optimizer
from .base import EPOCH_DEPRECATION, LRScheduler, set_option


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a metric stops improving.

    `step` takes the metric. The rate is reduced after more than `patience` steps without
    improvement.

    Parameters
    ----------
    optimizer
        The optimizer whose rates are set.
    mode
        ``"min"``: smaller is better; ``"max"``: larger is.
    factor
        Factor of a reduction; below 1.
    patience
        Number of steps without improvement to tolerate.
    threshold, threshold_mode
        Minimum improvement, relative to the best value (``"rel"``) or absolute (``"abs"``).
    cooldown
        Number of steps after a reduction in which steps without improvement are not counted.
    min_lr
        Lower bound of the rate, one for all groups or one per group.
    eps
        Changes of the rate up to this size are skipped.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=1.0)
    >>> schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (1.0, 1.0, 1.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.optimizer = optimizer
        self.factor = factor
        self.default_min_lr: Any = None
        if isinstance(min_lr, list | tuple):
            if len(min_lr) != len(optimizer.param_groups):
                raise ValueError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * len(optimizer.param_groups)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.last_epoch = 0
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._last_lr = self._lrs()
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record a metric, a number or a one-element tensor, and reduce the rates if needed."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            _C.warn(EPOCH_DEPRECATION)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._lrs()

    def _reduce_lr(self, epoch: int) -> None:
        if len(self.optimizer.param_groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(self.optimizer.param_groups)}) differs from when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), "
                    "usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field to match the length "
                    "of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(self.optimizer.param_groups)
        for number, group in enumerate(self.optimizer.param_groups):
            old = float(group["lr"])
            new = max(old * self.factor, self.min_lrs[number])
            if old - new > self.eps:
                set_option(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether the schedule is in the cooldown after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            return a < best * (1.0 - self.threshold) if self.mode == "min" else a > best * (self.threshold + 1.0)
        return a < best - self.threshold if self.mode == "min" else a > best + self.threshold


__all__ = ["ReduceLROnPlateau"]
