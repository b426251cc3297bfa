"""Averages of the parameters of all ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra
from candelabra import Tensor

from ...collectives.reductions import all_reduce
from ...groups import member
from ...process_group import ProcessGroup


def average_parameters(params: Iterable[Tensor], process_group: ProcessGroup | None) -> None:
    """Replace parameters by their averages; a rank outside the group does nothing."""
    group = member(process_group)
    if group is None:
        return
    kinds: dict[tuple[Any, Any], list[Tensor]] = {}
    for each in params:
        kinds.setdefault((each.dtype, each.device), []).append(each.detach())
    with candelabra.no_grad():
        for same in kinds.values():
            joined = candelabra.cat([each.reshape(-1) for each in same])
            joined.div_(group.size())
            all_reduce(joined, group=group)
            for each, part in zip(same, joined.split([each.numel() for each in same]), strict=True):
                each.copy_(part.view(each.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """Return the parameters that have gradients.

    Parameters
    ----------
    params : iterable
        Parameters, or an optimizer's groups of them.

    Raises
    ------
    NotImplementedError
        An element is neither.
    """
    found: list[Tensor] = []
    for each in params:
        if not isinstance(each, (Tensor, dict)):
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
        found += [
            tensor for tensor in (each["params"] if isinstance(each, dict) else [each]) if tensor.grad is not None
        ]
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Average those parameters that have gradients."""
    average_parameters(get_params_to_average(params), process_group)
