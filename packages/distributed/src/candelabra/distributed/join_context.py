"""Training in which ranks have different numbers of inputs: `Join`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import candelabra
from candelabra import _C

from .collectives.reductions import all_reduce
from .groups import get_rank
from .process_group import ProcessGroup
from .work import Work

__all__ = ["Join", "JoinHook", "Joinable"]

#: A rank that shadows so many iterations is told that the others have many more inputs.
_MANY = 1000


class JoinHook:
    """What a rank does when it has no more inputs."""

    def main_hook(self) -> None:
        """Shadow the collectives of one iteration of the ranks that have inputs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """End the training, once no rank has inputs.

        Parameters
        ----------
        is_last_joiner : bool
            Whether this rank is among those that had most inputs.
        """


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


class Joinable(ABC):
    """What takes part in a `Join`: it calls `Join.notify_join_context` before the collectives of an
    iteration.
    """

    _join_config = _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of this rank; the keywords are those of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device on which ranks tell one another whether they have inputs."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The ranks."""


class Join:
    """A block in which ranks may have different numbers of inputs.

    A rank that leaves the block shadows the collectives of the others by hooks, until all have left
    it.

    Parameters
    ----------
    joinables : list of Joinable
        What communicates in the block, of one group of ranks; hooks are called in this order.
    enable : bool
        False if all ranks have the same number of inputs.
    throw_on_early_termination : bool
        Raise RuntimeError on all ranks when the first one has no more inputs.
    **kwargs
        Given to each `Joinable.join_hook`.

    Raises
    ------
    ValueError
        There is nothing that joins, or the groups differ.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.join import Join
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
    >>> with Join([model], enable=False):
    ...     model(candelabra.ones(3, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        self._process_group: ProcessGroup = joinables[0].join_process_group
        if any(each.join_process_group is not self._process_group for each in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._device = joinables[0].join_device
        self._rank = get_rank(self._process_group)
        self._join_hooks = [each.join_hook(**kwargs) for each in joinables]

    def __enter__(self) -> Join:
        for number, each in enumerate(self._joinables):
            each._join_config = _JoinConfig(self._enable, self._throw_on_early_termination, number == 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._joinables:
            each._join_config = Joinable._join_config
        if not self._enable or kind is not None:
            return
        is_last_joiner = True
        iterations = 0
        while self._ranks_with_inputs():
            if self._throw_on_early_termination:
                all_reduce(candelabra.ones(1, device=self._device), group=self._process_group)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            is_last_joiner = False
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
            if iterations == _MANY:
                _C.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at "
                    f"least {_MANY} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                )
        for hook in self._join_hooks:
            hook.post_hook(is_last_joiner)

    def _ranks_with_inputs(self) -> int:
        count = candelabra.zeros(1, device=self._device)
        all_reduce(count, group=self._process_group)
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the others that this rank has inputs; only the first joinable of a block does so.

        Parameters
        ----------
        joinable : Joinable
            It calls this before the collectives of an iteration.

        Returns
        -------
        Work or None
            The message, if there is one.

        Raises
        ------
        RuntimeError
            A rank has no more inputs, and the block ends then.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        device, group = joinable.join_device, joinable.join_process_group
        work = all_reduce(candelabra.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = candelabra.zeros(1, device=device)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
