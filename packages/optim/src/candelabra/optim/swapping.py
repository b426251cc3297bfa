"""Temporarily give an optimizer other parameters and another state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from candelabra import Tensor

from .optimizer import Optimizer


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimizer use other parameters and another state inside a ``with`` block.

    `Optimizer.load_state_dict` replaces only the state, and permanently. This function also
    replaces the parameters, and restores the optimizer's own at the end of the block. Steps inside
    the block modify the tensors of the given state in place.

    Parameters
    ----------
    optimizer
        The optimizer whose parameters and state are replaced.
    swapin_parameters
        The replacement parameters, in the order of the optimizer's parameters.
    swapin_optim_state
        A dict as returned by `Optimizer.state_dict`. The options of its groups apply inside the
        block.

    Raises
    ------
    ValueError
        If the number of parameters or of groups differs from the optimizer's.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> own, other = candelabra.zeros(1), candelabra.zeros(1)
    >>> other.grad = candelabra.ones(1)
    >>> optimizer = optim.SGD([own], lr=1.0)
    >>> with optim.swap_in_optimizer_params_and_state(optimizer, {"weight": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> own, other
    (tensor([0.]), tensor([-1.]))
    """
    groups = optimizer.param_groups
    given_groups = swapin_optim_state["param_groups"]
    if len(given_groups) != len(groups):
        raise ValueError("loaded state dict has a different number of parameter groups")
    for group, given in zip(groups, given_groups, strict=True):
        if len(group["params"]) != len(given["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
    count = sum(len(group["params"]) for group in groups)
    if len(swapin_parameters) != count:
        raise ValueError(
            f"expected {count} parameters to swap in, as the optimizer has, but got {len(swapin_parameters)}"
        )
    own_state, own_groups = optimizer.state, [dict(group) for group in groups]
    parameters = iter(swapin_parameters.values())
    state: defaultdict[Any, Any] = defaultdict(dict)
    lent = []
    for given in given_groups:
        tensors = [next(parameters) for _ in given["params"]]
        for tensor, key in zip(tensors, given["params"], strict=True):
            if key in swapin_optim_state["state"]:
                state[tensor] = dict(swapin_optim_state["state"][key])
        lent.append({**given, "params": tensors})
    try:
        for group, borrowed in zip(groups, lent, strict=True):
            group.update(borrowed)
        optimizer.__setstate__({"state": state})
        yield
    finally:
        for group, own in zip(groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state


__all__ = ["swap_in_optimizer_params_and_state"]
