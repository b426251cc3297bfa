"""What is called while a model is trained."""

from __future__ import annotations

import math
from typing import Any

#: The methods that are called, and with which arguments besides the trainer.
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
    """A base for callbacks, where one is wanted: every method is there and does nothing.

    Any object will do that has some of the methods that `HOOKS` lists. They are called with the
    trainer and what is listed there, of each callback in the order in which they were given, and in
    this order::

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

    ``trainer.stop("why")`` ends training after the step. A callback with ``state_dict()`` and
    ``load_state_dict()`` has its state in checkpoints.

    Examples
    --------
    >>> from candelabra.utils.trainer import Callback
    >>> class Tell(Callback):
    ...     def on_epoch_end(self, trainer, values):
    ...         print(values["epoch"], values["train_loss"])
    """

    def on_fit_start(self, trainer: Any) -> None:
        """Be called before the first epoch, after a resume."""

    def on_epoch_start(self, trainer: Any) -> None:
        """Be called before the batches of an epoch."""

    def on_batch_start(self, trainer: Any, batch: Any) -> None:
        """Be called before the forward pass of a batch."""

    def on_batch_end(self, trainer: Any, batch: Any, loss: float) -> None:
        """Be called after the backward pass of a batch."""

    def on_before_step(self, trainer: Any) -> None:
        """Be called when the gradients of a step are complete, before they are clipped."""

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Be called after the optimizer and the scheduler stepped."""

    def on_evaluate_start(self, trainer: Any) -> None:
        """Be called before an evaluation."""

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Be called after an evaluation."""

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Be called after an epoch and its evaluation."""

    def on_checkpoint(self, trainer: Any, path: Any) -> None:
        """Be called after a checkpoint was written."""

    def on_exception(self, trainer: Any, error: BaseException) -> None:
        """Be called when an exception leaves the loop."""

    def on_fit_end(self, trainer: Any) -> None:
        """Be called at the end."""


def check_callback(callback: Any) -> None:
    """Refuse an object that has no method that is ever called, or one whose name begins with
    ``on_`` and that never is.
    """
    if isinstance(callback, type):
        raise TypeError(f"a callback is an object, but got the class {callback.__name__}: write {callback.__name__}()")
    named = [name for name in dir(callback) if name.startswith("on_") and callable(getattr(callback, name))]
    unknown = sorted(set(named) - set(HOOKS))
    if unknown or not named:
        what = f"has {', '.join(unknown)}, which is never called" if unknown else "has no method that is called"
        raise TypeError(f"callback {type(callback).__name__} {what}; callbacks have {', '.join(HOOKS)}")


class EarlyStopping:
    """Stops training when a value has not become better for a while.

    Parameters
    ----------
    monitor : str
        Which of the values of an evaluation.
    patience : int
        After how many evaluations without a better value.
    min_delta : float
        By how much a value has to be better to count.
    mode : str
        Whether small (``"min"``) or large (``"max"``) values are good.

    Raises
    ------
    ValueError
        If there is no such mode, or patience is not positive.
    KeyError
        While training, if evaluations have no such value.

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
        """Compare with the best value."""
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
        """Return the best value and how long ago it was."""
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from the state of another."""
        self.best, self.waited = float(state["best"]), int(state["waited"])
