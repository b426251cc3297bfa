"""Several modules called at once, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from ..modules.module import Module


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Any = None,
) -> list[Any]:
    """Call each module with its own arguments, all at the same time.

    Parameters
    ----------
    modules, inputs, kwargs_tup
        As many of each; an input that is no tuple is the one argument.
    devices
        As many devices as modules; tensors say where they are, so it is only checked.

    Returns
    -------
    list
        The results in order. The first exception goes to the caller.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.parallel.parallel_apply([nn.ReLU(), nn.Identity()], [candelabra.tensor([-1.0]), candelabra.tensor([-1.0])])
    [tensor([0.]), tensor([-1.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    if kwargs_tup is None:
        kwargs_tup = [{}] * len(modules)
    elif len(modules) != len(kwargs_tup):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of kwargs {len(kwargs_tup)}"
        )
    if devices is not None and len(modules) != len(devices):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}"
        )
    recording = candelabra.is_grad_enabled()

    def call(module: Module, arguments: Any, named: dict[str, Any]) -> Any:
        if isinstance(arguments, Tensor) or not isinstance(arguments, list | tuple):
            arguments = (arguments,)
        # Whether the tape records is a matter of each thread.
        with candelabra.enable_grad() if recording else candelabra.no_grad():
            return module(*arguments, **named)

    if len(modules) == 1:
        return [call(modules[0], inputs[0], kwargs_tup[0])]
    from concurrent.futures import ThreadPoolExecutor  # takes longer to import than most layers together

    with ThreadPoolExecutor(max(len(modules), 1)) as pool:
        return list(pool.map(call, modules, inputs, kwargs_tup))


__all__ = ["parallel_apply"]
