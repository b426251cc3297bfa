"""Averages of parameters every few steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from candelabra import _C

from ...groups import world
from ...process_group import ProcessGroup
from .utils import average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """What averages a model's parameters.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        The world by default.
    """

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = process_group if process_group is not None else world()
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or an optimizer's groups of them, if it is time to."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps, after the first `warmup_steps`.

    Parameters
    ----------
    period : int
        The number of steps from one average to the next.
    warmup_steps : int
        So many steps have no average.
    process_group : ProcessGroup, optional
        The world by default.

    Raises
    ------
    ValueError
        The period is not positive, or the number of steps is negative.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
    >>> averager.average_parameters(candelabra.nn.Linear(2, 1).parameters())
    >>> averager.step
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            _C.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing "
                "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case.",
            )
        self.warmup_steps = warmup_steps
        self.period = period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or an optimizer's groups of them, if it is time to; count a step."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
