"""Move parameters into one vector."""

from __future__ import annotations

from collections.abc import Sequence

import candelabra
from candelabra import Tensor


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """Return one vector that holds the elements of all tensors, which become views of it.

    Tensors that shared elements before share them afterwards. Elements of their storages that
    belong to none of them are left out.

    Raises
    ------
    RuntimeError
        If the tensors differ in dtype or device, or if one has holes that are left out.
    """
    if not tensors:
        return candelabra.empty(0)
    first = tensors[0]
    if any(tensor.dtype != first.dtype or tensor.device != first.device for tensor in tensors):
        raise RuntimeError("parameters of several types cannot share one vector")
    storages: dict[int, tuple[Tensor, Tensor]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in storages:
            elements = storage.nbytes() // tensor.element_size()
            everything = candelabra.as_strided(tensor.detach(), (elements,), (1,), 0)
            used = candelabra.zeros(elements, dtype=candelabra.bool, device=tensor.device)
            storages[storage.data_ptr()] = everything, used
        used = storages[storage.data_ptr()][1]
        candelabra.as_strided(used, tensor.shape, tensor.stride(), tensor.storage_offset()).fill_(True)
    starts: dict[int, tuple[int, Tensor]] = {}
    length = 0
    for key, (_, used) in storages.items():
        starts[key] = length, used.long().cumsum(0)
        length += int(used.sum())
    flat = candelabra.cat([everything[used] for everything, used in storages.values()])
    places = []
    for tensor in tensors:
        start, counts = starts[tensor.untyped_storage().data_ptr()]
        places.append(start + _place(tensor, counts))
    for tensor, place in zip(tensors, places):
        tensor.set_(flat.untyped_storage(), place, tensor.shape, tensor.stride())
    return flat


def _place(tensor: Tensor, counts: Tensor) -> int:
    """Return where a tensor starts among the used elements of its storage."""
    if tensor.numel() == 0:
        return 0
    start = tensor.storage_offset()
    last = start + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    if int(counts[last] - counts[start]) != last - start:
        raise RuntimeError("a parameter with holes, such as a slice of columns, cannot share one vector")
    return int(counts[start]) - 1
