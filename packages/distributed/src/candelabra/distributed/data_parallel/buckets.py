"""Which gradients are reduced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor

#: Of the first bucket, so that the first collective starts early in the backward pass.
FIRST_BUCKET_BYTES = 1024 * 1024


def assign(parameters: Sequence[Tensor], order: Sequence[int], limit: int, first_limit: int) -> list[list[int]]:
    """Return the indices of the parameters of each bucket.

    Parameters
    ----------
    parameters : sequence of Tensor
        The parameters.
    order : sequence of int
        Their indices in the order in which gradients are expected.
    limit, first_limit : int
        The bytes of each bucket and of the first, beyond which no gradient is added.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributed.data_parallel.buckets import assign
    >>> assign([candelabra.ones(2), candelabra.ones(2), candelabra.ones(2)], [2, 1, 0], 16, 8)
    [[2], [1, 0]]
    """
    buckets: list[list[int]] = []
    open_buckets: dict[Any, tuple[list[int], int]] = {}
    for index in order:
        parameter = parameters[index]
        kind = (parameter.dtype, parameter.device)
        members, size = open_buckets.get(kind, ([], 0))
        if not members:
            buckets.append(members)
        members.append(index)
        size += parameter.numel() * parameter.element_size()
        if size >= (first_limit if members is buckets[0] else limit):
            open_buckets.pop(kind, None)
        else:
            open_buckets[kind] = (members, size)
    return buckets


class Bucket:
    """The memory of the gradients of one bucket, and what is missing of them."""

    def __init__(self, indices: list[int], parameters: Sequence[Tensor]) -> None:
        self.indices = indices
        self.parameters = [parameters[index] for index in indices]
        first = self.parameters[0]
        sizes = [parameter.numel() for parameter in self.parameters]
        self.flat = candelabra.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        #: The place of each gradient.
        self.views = [
            piece.view(parameter.shape)
            for piece, parameter in zip(self.flat.split(sizes), self.parameters, strict=True)
        ]
        self.missing = len(indices)
        #: The result of the collective, once it has started.
        self.work: Any = None
