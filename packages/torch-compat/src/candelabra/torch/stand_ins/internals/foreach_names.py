"""``torch.utils._foreach_utils``: tensors in groups of one device and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor

__all__ = [
    "_device_has_foreach_support",
    "_get_foreach_kernels_supported_devices",
    "_group_tensors_by_device_and_dtype",
]

_Key = tuple[Any, Any]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the device types on which functions of several tensors are fast."""
    return ["cuda"]


def _device_has_foreach_support(device: Any) -> bool:
    """Return whether functions of several tensors are fast on a device."""
    return candelabra.device(device).type in _get_foreach_kernels_supported_devices()


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[_Key, tuple[list[list[Tensor | None]], list[int]]]:
    """Return the tensors of several lists by the device and dtype of the first list's.

    Parameters
    ----------
    tensorlistlist
        Lists of one length; lists after the first may be empty.
    with_indices
        Whether the positions of the tensors in the lists are returned too.
    """
    found: dict[_Key, tuple[list[list[Tensor | None]], list[int]]] = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        if tensor is None:
            raise ValueError("the tensors of the first list have to be there: they say where the others go")
        lists, places = found.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for group, given in zip(lists, tensorlistlist, strict=True):
            if given:
                group.append(given[place])
        if with_indices:
            places.append(place)
    return found
