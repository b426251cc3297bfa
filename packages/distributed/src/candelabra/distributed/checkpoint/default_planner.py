"""Options of saving and loading that PyTorch hands over as planners."""

from __future__ import annotations

from typing import Any


class DefaultSavePlanner:
    """Takes PyTorch's arguments, which have no effect: ranks save without a plan.

    Examples
    --------
    >>> from candelabra.distributed.checkpoint import DefaultSavePlanner
    >>> _ = DefaultSavePlanner(dedup_save_to_lowest_rank=True)
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        if not flatten_state_dict:
            raise ValueError("DefaultSavePlanner: names in checkpoints are flat; flatten_state_dict must be True")


class DefaultLoadPlanner:
    """Says whether names that the checkpoint lacks keep their values.

    Parameters
    ----------
    flatten_state_dict, flatten_sharded_tensors : bool
        For compatibility with PyTorch.
    allow_partial_load : bool
        Whether names may be missing from the checkpoint.

    Examples
    --------
    >>> from candelabra.distributed.checkpoint import DefaultLoadPlanner
    >>> DefaultLoadPlanner(allow_partial_load=True).allow_partial_load
    True
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        if not flatten_state_dict:
            raise ValueError("DefaultLoadPlanner: names in checkpoints are flat; flatten_state_dict must be True")
        self.allow_partial_load = allow_partial_load


def checked(planner: Any, kind: type, function: str) -> Any:
    """Return a planner argument, or a planner with the default options."""
    if planner is None:
        return kind()
    if not isinstance(planner, kind):
        raise TypeError(f"{function}: planner must be a {kind.__name__}, not {type(planner).__name__}")
    return planner
