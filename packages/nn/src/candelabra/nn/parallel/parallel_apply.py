"""Call several modules in parallel, each in its own thread."""

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
    """Call each module with its own arguments, in parallel.

    Parameters
    ----------
    modules, inputs, kwargs_tup
        Sequences of equal length. An input that is not a tuple or list is passed as the only
        argument.
    devices
        Checked for its length only; the tensors determine where each module runs.

    Returns
    -------
    list
        The results in order. If calls fail, the first exception is raised.

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
        # The grad mode is thread-local.
        with candelabra.enable_grad() if recording else candelabra.no_grad():
            return module(*arguments, **named)

    if len(modules) == 1:
        return [call(modules[0], inputs[0], kwargs_tup[0])]
    from concurrent.futures import ThreadPoolExecutor  # imported here because the import is slow

    with ThreadPoolExecutor(max(len(modules), 1)) as pool:
        return list(pool.map(call, modules, inputs, kwargs_tup))


__all__ = ["parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """Return a tensor of nested lists, tuples and dictionaries, or None.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.parallel.parallel_apply import get_a_var
    >>> get_a_var([1, {"x": candelabra.ones(1)}])
    tensor([1.])
    """
    if isinstance(obj, Tensor):
        return obj
    entries = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, list | tuple) else ()
    return next((found for found in map(get_a_var, entries) if found is not None), None)
