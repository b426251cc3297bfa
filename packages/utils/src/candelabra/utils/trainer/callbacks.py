"""Callbacks of the training loop."""

from __future__ import annotations

import math
from typing import Any

#: Hook methods, with their arguments besides the trainer.
HOOKS = {
    "on_fit_start": "before the first epoch, after a resume",
    "on_epoch_start": "before the batches of an epoch; not where it goes on in its middle",
    "on_batch_start": "batch: before the forward pass of a batch that is on its device",
    "on_batch_end": "batch, loss: after the backward pass; loss is a number",
    "on_before_step": "before gradients are clipped and the optimizer steps",
    "on_step_end": "values: after the step of optimizer and scheduler, with loss, lr and, where they are clipped, grad_norm",
    "on_evaluate_start": "before an evaluation",
    "on_evaluate_end": "values: after it, with eval_loss and the metrics",
    "on_epoch_end": "values: after an epoch and its evaluation, with the line of the history",
    "on_checkpoint": "path: after a checkpoint was written",
    "on_exception": "error: when an exception leaves the loop",
    "on_fit_end": "after the last epoch, and after an exception",
}


class Callback:
    """Optional base class of callbacks; all hook methods exist and do nothing.

    A callback is any object with at least one of the methods in `HOOKS`. The trainer calls the
    callbacks in the order in which they were given, and the hooks in this order::

        on_fit_start
          on_epoch_start
            on_batch_start, on_batch_end    for each batch
            on_before_step, on_step_end     for each step of the optimizer
            on_evaluate_start, on_evaluate_end, on_checkpoint    where they are due after a step
          on_evaluate_start, on_evaluate_end
          on_epoch_end
          on_checkpoint
        on_exception    where there is one
        on_fit_end

    ``trainer.stop("why")`` ends training after the current step. Checkpoints include the state of
    callbacks that have ``state_dict()`` and ``load_state_dict()``.

    Examples
    --------
    >>> from candelabra.utils.trainer import Callback
    >>> class Tell(Callback):
    ...     def on_epoch_end(self, trainer, values):
    ...         print(values["epoch"], values["train_loss"])
    """

    def on_fit_start(self, trainer: Any) -> None:
        """Run before the first epoch, after a resume."""

    def on_epoch_start(self, trainer: Any) -> None:
        """Run before the batches of an epoch."""

    def on_batch_start(self, trainer: Any, batch: Any) -> None:
        """Run before the forward pass of a batch."""

    def on_batch_end(self, trainer: Any, batch: Any, loss: float) -> None:
        """Run after the backward pass of a batch."""

    def on_before_step(self, trainer: Any) -> None:
        """Run when the gradients of a step are complete, before they are clipped."""

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Run after a step of the optimizer and the scheduler."""

    def on_evaluate_start(self, trainer: Any) -> None:
        """Run before an evaluation."""

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Run after an evaluation."""

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Run after an epoch and its evaluation."""

    def on_checkpoint(self, trainer: Any, path: Any) -> None:
        """Run after a checkpoint was written."""

    def on_exception(self, trainer: Any, error: BaseException) -> None:
        """Run when an exception leaves the loop."""

    def on_fit_end(self, trainer: Any) -> None:
        """Run at the end of training."""


def check_callback(callback: Any) -> None:
    """Raise TypeError if an object has no hook method, or an ``on_`` method that is not a hook."""
    if isinstance(callback, type):
        raise TypeError(f"a callback is an object, but got the class {callback.__name__}: write {callback.__name__}()")
    named = [name for name in dir(callback) if name.startswith("on_") and callable(getattr(callback, name))]
    unknown = sorted(set(named) - set(HOOKS))
    if unknown or not named:
        what = f"has {', '.join(unknown)}, which is never called" if unknown else "has no method that is called"
        raise TypeError(f"callback {type(callback).__name__} {what}; callbacks have {', '.join(HOOKS)}")


class EarlyStopping:
    """Stops training when a value has stopped improving.

    Parameters
    ----------
    monitor : str
        Name of the evaluation value to monitor.
    patience : int
        Number of evaluations without improvement after which training stops.
    min_delta : float
        Minimum change that counts as an improvement.
    mode : str
        Whether smaller (``"min"``) or larger (``"max"``) values are better.

    Raises
    ------
    ValueError
        If the mode is unknown or patience is not positive.
    KeyError
        During training, if evaluations do not have the monitored value.

    Examples
    --------
    >>> from candelabra.utils.trainer import EarlyStopping
    >>> EarlyStopping("eval_accuracy", patience=5, mode="max").patience
    5
    """

    def __init__(
        self, monitor: str = "eval_loss", patience: int = 3, min_delta: float = 0.0, mode: str = "min"
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping: mode is 'min' or 'max', but got {mode!r}")
        if patience < 1:
            raise ValueError(f"EarlyStopping: patience is positive, but got {patience}")
        self.monitor = monitor
        self.patience = patience
        self.min_delta = min_delta
        self.mode = mode
        self.best = math.inf
        self.waited = 0

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Compare the value with the best one, and stop training if patience has run out."""
        if self.monitor not in values:
            raise KeyError(f"EarlyStopping: an evaluation has no {self.monitor!r}, only {', '.join(values)}")
        found = values[self.monitor] if self.mode == "min" else -values[self.monitor]
        if found < self.best - self.min_delta or (math.isinf(self.best) and not math.isnan(found)):
            self.best, self.waited = found, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop(f"{self.monitor} was not better for {self.waited} evaluations")

    def state_dict(self) -> dict[str, float]:
        """Return the best value and the number of evaluations since then."""
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore the state that `state_dict` returned."""
        self.best, self.waited = float(state["best"]), int(state["waited"])
