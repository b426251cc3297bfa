"""Averages of parameters: stochastic weight averaging and exponential moving averages.

This module needs candelabra.nn. Sources: Izmailov et al., "Averaging Weights Leads to Wider Optima
and Better Generalization", 2018; Polyak and Juditsky, 1992.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import candelabra
from candelabra import Tensor, no_grad
from candelabra.nn import Module

from .lr_scheduler.base import LRScheduler, per_group
from .optimizer import Optimizer


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """Return a function that updates lists of exponential moving averages in place.

    It computes ``a = decay * a + (1 - decay) * p`` for each average a and parameter p.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim.swa_utils import get_ema_multi_avg_fn
    >>> average = candelabra.zeros(1)
    >>> get_ema_multi_avg_fn(0.75)([average], [candelabra.ones(1)], 1)
    >>> average
    tensor([0.2500])
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: Sequence[Tensor], parameters: Sequence[Tensor], num_averaged: Any) -> None:
        for average, parameter in zip(averages, parameters, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(parameter, 1 - decay)
            else:
                average.copy_(average * decay + parameter * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """Return a function that updates lists of means over `n` values to means over ``n + 1``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim.swa_utils import get_swa_multi_avg_fn
    >>> average = candelabra.zeros(1)
    >>> get_swa_multi_avg_fn()([average], [candelabra.ones(1)], 3)
    >>> average
    tensor([0.2500])
    """

    @no_grad()
    def swa_update(averages: Sequence[Tensor], parameters: Sequence[Tensor], num_averaged: Any) -> None:
        count = float(num_averaged) + 1
        for average, parameter in zip(averages, parameters, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(parameter, 1 / count)
            else:
                average.copy_(average + (parameter - average) / count)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return a function that computes ``decay * average + (1 - decay) * parameter``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim.swa_utils import get_ema_avg_fn
    >>> get_ema_avg_fn(0.75)(candelabra.zeros(1), candelabra.ones(1), 1)
    tensor([0.2500])
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, parameter: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * parameter

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return a function that updates a mean over `n` values to the mean over ``n + 1``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim.swa_utils import get_swa_avg_fn
    >>> get_swa_avg_fn()(candelabra.zeros(1), candelabra.ones(1), 3)
    tensor([0.2500])
    """

    @no_grad()
    def swa_update(average: Tensor, parameter: Tensor, num_averaged: Any) -> Tensor:
        return average + (parameter - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the calls of `update_parameters`.

    Parameters
    ----------
    model
        The model to copy.
    device
        Device of the copy; the model's devices by default.
    avg_fn
        Function of one average, one parameter and the count so far that returns the new average.
    multi_avg_fn
        Function of lists of averages and parameters and the count so far that updates the averages
        in place. Without either function, the average is the equally weighted mean.
    use_buffers
        Whether to average buffers too. Otherwise they are copied from the model.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.optim.swa_utils import AveragedModel
    >>> model = nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     with candelabra.no_grad():
    ...         _ = model.weight.fill_(value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Sequence[Tensor], Sequence[Tensor], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", candelabra.tensor(0, dtype=candelabra.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged copy."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Include the current parameters of `model` in the average."""
        buffers = self.use_buffers
        own = itertools.chain(self.module.parameters(), self.module.buffers()) if buffers else self.module.parameters()
        theirs = itertools.chain(model.parameters(), model.buffers()) if buffers else model.parameters()
        averages = [average.detach() for average in own]
        values = [value.detach().to(average.device) for value, average in zip(theirs, averages, strict=False)]
        averages = averages[: len(values)]
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            kinds: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, value in zip(averages, values, strict=True):
                group = kinds.setdefault((str(average.device), average.dtype), ([], []))
                group[0].append(average)
                group[1].append(value)
            for mine, new in kinds.values():
                update(mine, new, self.n_averaged.to(mine[0].device))
        if not buffers:
            for copy, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                copy.detach().copy_(buffer.detach().to(copy.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch normalization layers in one pass over the data.

    Parameters
    ----------
    loader
        Yields batches: tensors, or lists and tuples whose first entry is a tensor.
    model
        The model. It is called with each batch in training mode.
    device
        Device to move batches to.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.optim.swa_utils import update_bn
    >>> model = nn.BatchNorm1d(1)
    >>> update_bn([candelabra.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    momenta = {
        module: module.momentum
        for module in model.modules()
        if hasattr(module, "reset_running_stats") and hasattr(module, "momentum")
    }
    momenta = {module: momentum for module, momentum in momenta.items() if "BatchNorm" in _names_of(module)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # equally weighted mean over all batches
    for batch in loader:
        first = batch[0] if isinstance(batch, list | tuple) else batch
        model(first if device is None else first.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


def _names_of(module: Any) -> str:
    return " ".join(kind.__name__ for kind in type(module).__mro__)


class SWALR(LRScheduler):
    """Anneal the rates from their current values to `swa_lr`, then keep them constant.

    Parameters
    ----------
    optimizer
        The optimizer whose rates are set.
    swa_lr
        Target rates, one for all groups or one per group.
    anneal_epochs
        Number of steps of the annealing.
    anneal_strategy
        ``"cos"`` for cosine annealing, ``"linear"`` for linear annealing.
    last_epoch
        Step to resume from.

    Raises
    ------
    ValueError
        If the strategy is unknown or the number of steps is negative.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=1.0)
    >>> schedule = optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = []
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates += schedule.get_last_lr()
    >>> rates
    [0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(per_group("swa_lr", swa_lr, optimizer), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """Map the elapsed fraction of the annealing to the fraction of the change of the rate."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (
            self.anneal_func(max(0.0, min(1.0, count / max(1, self.anneal_epochs)))) for count in (step - 1, step)
        )
        rates = []
        for group, rate in zip(self.optimizer.param_groups, self._lrs(), strict=True):
            goal = group["swa_lr"]
            # Invert the interpolation: the initial rate that leads to the current one.
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
