"""Operators that a backend has neither a kernel nor a decomposition for, computed on the CPU.

The fallback is off by default. A backend's plugin switches it on by ``registrar.cpu_fallback()``, a
user by `cpu_fallback` or the environment variable ``CANDELABRA_CPU_FALLBACK``. It copies the memory of
the arguments to the host, runs the CPU backend's kernel, and copies back what that has changed: slow,
and exact, random numbers included.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter

from candelabra import _C
from candelabra.catalogue.declaration import RANDOM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, device

#: The environment variable: device types separated by commas, or ``all``.
VARIABLE = "CANDELABRA_CPU_FALLBACK"

_calls: dict[str, Counter[str]] = {}


def cpu_fallback(device_type: str, enabled: bool = True) -> None:
    """Switch the CPU fallback of a device type on or off.

    Parameters
    ----------
    device_type : str
        The device type, whose backend this loads.
    enabled : bool
        Whether operators without a kernel and without a decomposition run on the CPU. Otherwise they
        raise NotImplementedError.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cpu_fallback("cpu", False)
    >>> candelabra.backends.fallback_calls("cpu")
    {}
    """
    from . import load

    load(device_type)
    _C.set_cpu_fallback(device_type, enabled)


def fallback_calls(device_type: str) -> dict[str, int]:
    """Return how often each operator of a device type has run on the CPU, by the operator's name.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.fallback_calls("cpu")
    {}
    """
    return dict(_calls.get(device_type, {}))


def wanted_by_environment(device_type: str) -> bool:
    """Tell whether the environment variable names this device type."""
    names = os.environ.get(VARIABLE, "").replace(" ", "").split(",")
    return device_type in names or "all" in names


class HostCopies:
    """Host copies of the storages of a call's tensors. Views of one storage stay views of one."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[Tensor, Tensor, int]] = {}  # on the device, on the host, its version
        self._kept: list[Any] = []

    def of(self, value: Any) -> Any:
        """Return an argument with its tensors in host memory, and device arguments replaced."""
        if isinstance(value, _C.Tensor):
            return self._tensor(value)
        if isinstance(value, _C.device):
            return _C.device("cpu")
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.of, value)) if type(value) in (tuple, list) else value
        return value

    def _tensor(self, tensor: Tensor) -> Tensor:
        if tensor.device.type == "cpu":
            return tensor
        storage = tensor.untyped_storage()
        if id(storage) not in self._blocks:
            self._kept.append(storage)
            block = _C.tensor_on_storage(storage, _C.uint8)
            host = block.to("cpu")
            self._blocks[id(storage)] = (block, host, host._version)
        host = self._blocks[id(storage)][1]
        whole = _C.tensor_on_storage(host.untyped_storage(), tensor.dtype)
        return whole.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())

    def write_back(self) -> None:
        """Copy to the device what the call has changed."""
        for block, host, version in self._blocks.values():
            if host._version != version:
                block.copy_(host)


def run(operator: Any, arguments: tuple[Any, ...], generator: Any, target: device) -> Any:
    """Compute a call of an operator on the CPU; the core calls this.

    Parameters
    ----------
    operator
        The operator, or its in-place variant.
    arguments : tuple
        All arguments in the order of the schema.
    generator : Generator or None
        The call's generator on the device.
    target : device
        Where the results belong.

    Returns
    -------
    Tensor or tuple
        The results on the device. What the operator changes in place is changed.
    """
    _count(operator.__name__, target.type)
    copies = HostCopies()
    values = [copies.of(value) for value in arguments]
    host_generator = None
    if operator.tags & RANDOM:
        generator = _C.default_generator(target) if generator is None else generator
        host_generator = _C.Generator("cpu")
        host_generator.set_state(generator.get_state())
    result = operator.again(tuple(values), None, host_generator)
    if host_generator is not None:
        generator.set_state(host_generator.get_state())
    copies.write_back()
    originals = {id(value): given for value, given in zip(values, arguments, strict=True)}
    return _to_device(result, originals, target)


def _to_device(result: Any, originals: dict[int, Any], target: device) -> Any:
    if isinstance(result, _C.Tensor):
        # An operator in place returns the caller's tensor.
        return originals.get(id(result)) if id(result) in originals else result.to(target)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(tuple(_to_device(part, originals, target) for part in result))
    if isinstance(result, (tuple, list)):
        return type(result)(_to_device(part, originals, target) for part in result)
    return result


def _count(name: str, device_type: str) -> None:
    calls = _calls.setdefault(device_type, Counter())
    if not calls[name]:
        warnings.warn(
            f"the operator {name} has no kernel on device '{device_type}' and runs on the CPU, with copies of its arguments "
            f"(candelabra.backends.cpu_fallback('{device_type}', False) makes this an error)",
            RuntimeWarning,
            stacklevel=3,
        )
    calls[name] += 1
