"""The range test that finds a learning rate to begin with."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .placement import to_device
from .randomness import kept_generators

if TYPE_CHECKING:
    from .trainer import Trainer

#: The weight of the past in the mean of the losses.
_SMOOTHING = 0.9
#: Losses before the mean of few is worth anything, which no suggestion takes.
_WARMUP = 5


class LearningRates:
    """The losses of a range test.

    Attributes
    ----------
    rates : list of float
        The learning rates.
    losses : list of float
        The smoothed loss at each.
    """

    def __init__(self, rates: list[float], losses: list[float]) -> None:
        self.rates = rates
        self.losses = losses

    @property
    def suggestion(self) -> float:
        """The rate at which the loss falls fastest, against the logarithm of the rate.

        Raises
        ------
        RuntimeError
            If there are too few losses, or none is less than the one before it.
        """
        rate = self._steepest()
        if rate is None:
            raise RuntimeError("find_learning_rate(): the loss does not fall in this range; try others, or more steps")
        return rate

    def _steepest(self) -> float | None:
        slopes = [
            (self.losses[i + 1] - self.losses[i - 1]) / math.log(self.rates[i + 1] / self.rates[i - 1])
            for i in range(1, len(self.rates) - 1)
        ]
        usable = slopes[_WARMUP:]
        return self.rates[1 + _WARMUP + usable.index(min(usable))] if usable and min(usable) < 0 else None

    def draw(self, path: Any) -> None:
        """Draw the losses against the rates with matplotlib; the suffix of `path` is the format."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.semilogx(self.rates, self.losses)
        rate = self._steepest()
        if rate is not None:
            axes.axvline(rate, linestyle="--", linewidth=0.8)
        axes.set_xlabel("learning rate")
        axes.set_ylabel("loss (smoothed)")
        axes.spines[["top", "right"]].set_visible(False)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)

    def __repr__(self) -> str:
        return f"LearningRates({len(self.rates)} steps from {self.rates[0]:.3g} to {self.rates[-1]:.3g})"


def find_learning_rate(
    trainer: Trainer, loader: Any, *, start: float = 1e-7, end: float = 10.0, steps: int = 100, diverged: float = 4.0
) -> LearningRates:
    """Train with a rate that grows exponentially, and return the losses.

    Model, optimizer, scaler and generators of random numbers are as before afterwards.

    Parameters
    ----------
    trainer : Trainer
        What will train, with its model, optimizer, loss and precision.
    loader : iterable
        Batches as in training; it begins again where it ends.
    start, end : float
        The first and the last rate.
    steps : int
        The number of steps.
    diverged : float
        The test ends where the loss is this many times the least one so far, or not finite.

    Raises
    ------
    ValueError
        If the range is empty, or there are fewer than 10 steps.
    RuntimeError
        If there are no batches, or the trainer is in the middle of `fit`.

    Notes
    -----
    Smith (2017), "Cyclical learning rates for training neural networks". Begin with
    :attr:`LearningRates.suggestion`, or with a tenth of the rate of the least loss.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn, optim
    >>> from candelabra.utils.data import DataLoader, TensorDataset
    >>> from candelabra.utils.trainer import Trainer, find_learning_rate
    >>> x = candelabra.linspace(-1, 1, 64)[:, None]
    >>> model = nn.Linear(1, 1)
    >>> trainer = Trainer(model, optim.SGD(model.parameters(), lr=1), nn.functional.mse_loss, progress_bar=False)
    >>> found = find_learning_rate(trainer, DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16))
    >>> 0.001 < found.suggestion < 2
    True
    """
    if not 0 < start < end:
        raise ValueError(f"find_learning_rate(): expected 0 < start < end, but got {start} and {end}")
    if steps < 10:
        raise ValueError(f"find_learning_rate(): expected at least 10 steps, but got {steps}")
    if trainer.is_fitting:
        raise RuntimeError("find_learning_rate(): the trainer is fitting; look for a rate before")
    model, optimizer, precision = trainer.model, trainer.optimizer, trainer.precision
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    scaler = copy.deepcopy(precision.scaler)
    training = [(module, module.training) for module in model.modules()]
    found = LearningRates([], [])
    try:
        with kept_generators():
            model.train()
            _test(trainer, loader, start, end, steps, diverged, found)
    finally:
        optimizer.zero_grad()
        model.load_state_dict(before[0])
        optimizer.load_state_dict(before[1])
        precision.scaler = scaler
        for module, mode in training:
            module.training = mode
    return found


def _test(
    trainer: Trainer, loader: Any, start: float, end: float, steps: int, diverged: float, found: LearningRates
) -> None:
    """Run the steps, and append rates and losses to `found`."""
    mean, least, batches = 0.0, math.inf, iter(loader)
    for step in range(steps):
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches, None)
            if batch is None:
                raise RuntimeError("find_learning_rate(): the loader has no batches")
        rate = start * (end / start) ** (step / (steps - 1))
        for group in trainer.optimizer.param_groups:
            group["lr"] = rate
        trainer.optimizer.zero_grad()
        with trainer.precision.forward():
            result = trainer.forward(to_device(batch, trainer.device, non_blocking=True))
        loss = float(result["loss"].item())
        mean = _SMOOTHING * mean + (1 - _SMOOTHING) * loss
        smoothed = mean / (1 - _SMOOTHING ** (step + 1))
        if not math.isfinite(loss) or (step >= _WARMUP and smoothed > diverged * least):
            return
        least = min(least, smoothed)
        found.rates.append(rate)
        found.losses.append(smoothed)
        trainer.precision.backward(result["loss"])
        trainer.precision.step(trainer.optimizer)
