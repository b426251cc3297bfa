"""Averages of parameters in groups of ranks of several sizes, larger ones less often."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from candelabra import _C

from ...groups import get_world_size, new_subgroups
from ...process_group import ProcessGroup
from .averagers import ModelAverager
from .utils import average_parameters_or_parameter_groups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages parameters in small groups often, and in larger ones less often (Lin et al. 2020).

    Of the periods that divide a step's number the longest counts, which belongs to the largest
    group.

    Parameters
    ----------
    period_group_size_dict : mapping
        The size of the groups by the number of steps from one average to the next, in ascending
        order. The last size is that of `process_group`.
    warmup_steps : int
        So many steps have no average.
    process_group : ProcessGroup, optional
        The world by default.

    Attributes
    ----------
    period_process_group_dict : OrderedDict
        This rank's group by period.

    Raises
    ------
    ValueError
        There are no periods, one is not positive, the last group has not all ranks, or the number
        of steps is negative.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.model_averaging.hierarchical_model_averager import (
    ...     HierarchicalModelAverager,
    ... )
    >>> dist.init_process_group("fake", rank=0, world_size=8)
    >>> averager = HierarchicalModelAverager({2: 2, 4: 8}, warmup_steps=100)
    >>> [group.size() for group in averager.period_process_group_dict.values()]
    [2, 8]
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            _C.warn(
                "When the maximum period in arg ``period_group_size_dict`` is 1, no need to use model averaging because the "
                "communication cost of all-reducing parameters will be no less than the cost of all-reducing gradients by "
                "DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel should be used for "
                "this case.",
            )
        everyone = get_world_size(self.process_group)
        largest = list(period_group_size_dict.values())[-1]
        if largest != everyone:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {largest} must be equal to the size of arg "
                f"``process_group`` {everyone}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict: OrderedDict[int, ProcessGroup] = OrderedDict()
        for period, size in period_group_size_dict.items():
            group = self.process_group
            if size != everyone:
                group, _ = new_subgroups(group_size=size, group=self.process_group)
            self.period_process_group_dict[period] = group

    def _find_process_group(self) -> ProcessGroup | None:
        """Return the group that averages in this step."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or an optimizer's groups of them, if it is time to; count a step."""
        group = self._find_process_group() if self.step >= self.warmup_steps else None
        if group is not None:
            average_parameters_or_parameter_groups(params, group)
        self.step += 1
