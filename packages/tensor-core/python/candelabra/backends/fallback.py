"""Operators that a backend has neither a kernel nor a decomposition for, computed on the CPU.

The fallback is off by default. A backend's plugin switches it on by ``registrar.cpu_fallback()``, a
user by `cpu_fallback` or the environment variable ``CANDELABRA_CPU_FALLBACK``. It copies the memory
of the arguments to the host, runs the CPU backend's kernel, and copies back what that has changed:
slow, and exact, random numbers included.
"""

from __future__ import annotations

import os
import threading
from collections import Counter

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import RANDOM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, device

#: The environment variable: device types separated by commas, or ``all``.
VARIABLE = "CANDELABRA_CPU_FALLBACK"

_calls: dict[str, Counter[str]] = {}
# Two threads must not draw the same random numbers, nor write each other's old bytes back.
_lock = threading.RLock()
# Host copies begin at a multiple of this, so that elements are aligned as on the device.
_ALIGNMENT = 64
# Bumps no version: the core does, where the operator's contract says so.
_copy_bytes = OPERATORS["copy_"].uncounted


def cpu_fallback(device_type: str, enabled: bool = True) -> None:
    """Switch the CPU fallback of a device type on or off.

    Parameters
    ----------
    device_type : str
        The device type, whose backend this loads. Not ``"cpu"``.
    enabled : bool
        Whether operators without a kernel and without a decomposition run on the CPU. Otherwise
        they raise NotImplementedError.

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
    return device_type != "cpu" and (device_type in names or "all" in names)


class _HostCopy:
    """A host copy of the range of a storage that the tensors of a call are in.

    Views of one storage stay views of one, so that overlapping arguments behave as on the CPU.
    """

    def __init__(self, storage: Any) -> None:
        self.storage = storage
        self.begin, self.end = storage.nbytes(), 0
        self.host: Any = None

    def include(self, tensor: Tensor) -> None:
        begin, end = _range_of(tensor)
        if begin == end:
            return
        self.begin, self.end = min(self.begin, begin // _ALIGNMENT * _ALIGNMENT), max(self.end, end)

    def part(self, begin: int, end: int) -> Tensor:
        """Return these bytes of the device's memory as a tensor."""
        return _C.tensor_on_storage(self.storage, _C.uint8).as_strided((max(end - begin, 0),), (1,), begin)

    def view(self, tensor: Tensor) -> Tensor:
        """Return the host's counterpart of a tensor."""
        if self.host is None:
            self.host = self.part(self.begin, self.end).to("cpu")
        whole = _C.tensor_on_storage(self.host.untyped_storage(), tensor.dtype)
        offset = tensor.storage_offset() - self.begin // tensor.element_size() if tensor.numel() else 0
        return whole.as_strided(tuple(tensor.shape), tensor.stride(), offset)

    def write_back(self, tensor: Tensor) -> None:
        """Copy the range of a tensor to the device."""
        begin, end = _range_of(tensor)
        if begin < end:
            _copy_bytes(self.part(begin, end), self.host.as_strided((end - begin,), (1,), begin - self.begin))


def _range_of(tensor: Tensor) -> tuple[int, int]:
    """Return the first byte of a tensor's elements in its storage, and the one behind the last."""
    if not tensor.numel():
        return 0, 0
    size, first = tensor.element_size(), tensor.storage_offset()
    last = first + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return first * size, (last + 1) * size


def _tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors of an argument that are not on the CPU."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [part for part in values if isinstance(part, _C.Tensor) and part.device.type != "cpu"]


class _HostCopies:
    """The arguments of a call in host memory."""

    def __init__(self, operator: Any, arguments: tuple[Any, ...]) -> None:
        self._copies: dict[int, _HostCopy] = {}
        for value in arguments:
            for tensor in _tensors_in(value):
                storage = tensor.untyped_storage()
                self._copies.setdefault(id(storage), _HostCopy(storage)).include(tensor)
        self.values = tuple(
            _C.device("cpu") if name == "device" else self._of(value)
            for name, value in zip(operator.parameters, arguments, strict=True)
        )

    def _of(self, value: Any) -> Any:
        if isinstance(value, _C.Tensor):
            return value if value.device.type == "cpu" else self._copies[id(value.untyped_storage())].view(value)
        return type(value)(map(self._of, value)) if type(value) in (tuple, list) else value

    def write_back(self, value: Any) -> None:
        """Copy the tensors of an argument to the device."""
        for tensor in _tensors_in(value):
            self._copies[id(tensor.untyped_storage())].write_back(tensor)


def _changed(operator: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments that an operator changes."""
    if operator.functional is not None:  # an in-place variant has its operator's schema
        return [arguments[0]]
    return [value for value, kind in zip(arguments, operator.parameter_types, strict=True) if "!" in kind]


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
    # The hooks of this thread have seen the call; its copies are not theirs.
    hook = _C.set_dispatch_hook(None)
    try:
        _count(operator.__name__, target.type)
        changed = _changed(operator, arguments)
        if not changed and not operator.tags & RANDOM:
            return _compute(operator, arguments, None, target, changed)
        with _lock:
            return _compute(operator, arguments, generator, target, changed)
    finally:
        _C.set_dispatch_hook(hook)


def _compute(operator: Any, arguments: tuple[Any, ...], generator: Any, target: device, changed: list[Any]) -> Any:
    copies = _HostCopies(operator, arguments)
    host_generator = None
    if operator.tags & RANDOM:
        generator = _C.default_generator(target) if generator is None else generator
        host_generator = _C.Generator("cpu")
        host_generator.set_state(generator.get_state())
    result = operator.again(copies.values, None, host_generator)
    if host_generator is not None:
        generator.set_state(host_generator.get_state())
    for value in changed:
        copies.write_back(value)
    originals = {id(value): given for value, given in zip(copies.values, arguments, strict=True)}
    return _to_device(result, originals, target)


def _to_device(result: Any, originals: dict[int, Any], target: device) -> Any:
    if isinstance(result, _C.Tensor):
        # An operator in place returns the caller's tensor.
        return originals[id(result)] if id(result) in originals else result.to(target)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(tuple(_to_device(part, originals, target) for part in result))
    if isinstance(result, (tuple, list)):
        return type(result)(_to_device(part, originals, target) for part in result)
    return result


def _count(name: str, device_type: str) -> None:
    with _lock:
        calls = _calls.setdefault(device_type, Counter())
        calls[name] += 1
        is_first = calls[name] == 1
    if is_first:
        _C.warn(
            f"the operator {name} has no kernel for this call on device '{device_type}' and runs on the CPU, with copies of its "
            f"arguments (candelabra.backends.cpu_fallback('{device_type}', False) makes this an error)",
            RuntimeWarning,
        )
