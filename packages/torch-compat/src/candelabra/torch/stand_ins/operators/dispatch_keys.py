"""``torch._C.DispatchKey`` and ``DispatchKeySet``: the keys of PyTorch's dispatcher.

Candelabra has no dispatcher with keys: a tensor's keys follow from what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

from candelabra import Tensor
from candelabra.amp import autocasting

__all__ = ["DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard", "_dispatch_keys", "_dispatch_has_kernel"]

_NAMES = [
    "Undefined",
    "Dense",
    "CPU",
    "CUDA",
    "XLA",
    "MPS",
    "XPU",
    "HPU",
    "MTIA",
    "Meta",
    "PrivateUse1",
    "Quantized",
    "SparseCPU",
    "SparseCUDA",
    "SparseCsrCPU",
    "SparseCsrCUDA",
    "NestedTensorCPU",
    "NestedTensorCUDA",
    "BackendSelect",
    "Python",
    "Fake",
    "FuncTorchDynamicLayerBackMode",
    "Functionalize",
    "Named",
    "Conjugate",
    "Negative",
    "ZeroTensor",
    "ADInplaceOrView",
    "AutogradOther",
    "AutogradFunctionality",
    "AutogradNestedTensor",
    "AutogradCPU",
    "AutogradCUDA",
    "AutogradXLA",
    "AutogradMPS",
    "AutogradXPU",
    "AutogradHPU",
    "AutogradMeta",
    "Tracer",
    "AutocastCPU",
    "AutocastCUDA",
    "AutocastXPU",
    "FuncTorchBatched",
    "BatchedNestedTensor",
    "FuncTorchVmapMode",
    "Batched",
    "VmapMode",
    "FuncTorchGradWrapper",
    "PythonTLSSnapshot",
    "FuncTorchDynamicLayerFrontMode",
    "PreDispatch",
    "PythonDispatcher",
    "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "Autograd",
]
#: A key of the dispatcher; `candelabra.library` takes their names.
DispatchKey = IntEnum("DispatchKey", [(name, number) for number, name in enumerate(_NAMES)])  # type: ignore[misc]


class DispatchKeySet:
    """A set of keys.

    Parameters
    ----------
    keys
        A key, or several.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.operators.dispatch_keys import DispatchKey, DispatchKeySet
    >>> (DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.AutogradCPU)).has(DispatchKey.CPU)
    True
    """

    def __init__(self, keys: Any = ()) -> None:
        self._keys = frozenset(keys if isinstance(keys, Iterable) else [keys])

    def has(self, key: Any) -> bool:
        """Return whether a key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """Return the set with a key."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """Return the set without a key."""
        return DispatchKeySet(self._keys - {key})

    def highestPriorityTypeId(self) -> Any:
        """Return the key that is handled first."""
        return max(self._keys, default=DispatchKey["Undefined"])

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._keys))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in sorted(self._keys))})"


class _ExcludeDispatchKeyGuard:
    """A context in which calls are not autocast on the devices of these keys.

    Parameters
    ----------
    keys : DispatchKeySet
        Keys of autocasting, such as ``AutocastCPU``.

    Raises
    ------
    NotImplementedError
        For other keys.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.operators.dispatch_keys import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
    >>> with candelabra.autocast("cpu"), _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutocastCPU)):
    ...     candelabra.is_autocast_enabled("cpu")
    False
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        other = [key.name for key in keys if not key.name.startswith("Autocast")]
        if other:
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: {other[0]}: Candelabra's calls have no such key; candelabra.no_grad() leaves out autograd"
            )
        self._devices = [key.name.removeprefix("Autocast").lower() for key in keys]
        self._before: list[str] = []

    def __enter__(self) -> None:
        self._before = [device for device in self._devices if autocasting.is_autocast_enabled(device)]
        for device in self._before:
            autocasting.set_autocast_enabled(device, False)

    def __exit__(self, *exception: object) -> None:
        for device in self._before:
            autocasting.set_autocast_enabled(device, True)


def _dispatch_keys(tensor: Tensor) -> DispatchKeySet:
    """Return the keys of a tensor: its device, and that autograd records it.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.operators.dispatch_keys import _dispatch_keys
    >>> _dispatch_keys(candelabra.ones(1))
    DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU)
    """
    kind = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "mps": "MPS", "xpu": "XPU"}.get(
        tensor.device.type, "PrivateUse1"
    )
    autograd = f"Autograd{kind}" if f"Autograd{kind}" in DispatchKey.__members__ else "AutogradOther"
    keys = [DispatchKey[kind]]
    if not tensor.is_inference():
        keys += [DispatchKey["ADInplaceOrView"], DispatchKey[autograd]]
    return DispatchKeySet(keys)


def _dispatch_has_kernel(name: str) -> bool:
    """Return whether there is an operator of a full name, such as ``aten::add``."""
    from candelabra import ops

    namespace, _, rest = name.partition("::")
    return hasattr(getattr(ops, namespace), rest.partition(".")[0])
