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


#: Gradients of at least so many bytes are reduced where they are, if nothing needs them together.
SEPARATE_BYTES = 512 * 1024


class Bucket:
    """The memory of the gradients of one bucket.

    Parameters
    ----------
    indices : list of int
        The parameters of the bucket.
    parameters : sequence of Tensor
        All parameters.
    is_joined : bool
        Whether all gradients are in `flat`, or only the small ones.
    """

    def __init__(self, indices: list[int], parameters: Sequence[Tensor], is_joined: bool) -> None:
        self.indices = indices
        self.parameters = [parameters[index] for index in indices]
        first = self.parameters[0]
        #: The gradients in `flat`, and the others, by their number in the bucket.
        self.joined: list[int] = []
        self.separate: list[int] = []
        for number, parameter in enumerate(self.parameters):
            is_small = parameter.numel() * parameter.element_size() < SEPARATE_BYTES
            (self.joined if is_joined or is_small else self.separate).append(number)
        sizes = [self.parameters[number].numel() for number in self.joined]
        self.flat = candelabra.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        #: Where each gradient is reduced; None for a separate one while no reduction runs.
        self.views: list[Tensor | None] = [None] * len(indices)
        for number, piece in zip(self.joined, self.flat.split(sizes) if sizes else (), strict=True):
            self.views[number] = piece.view(self.parameters[number].shape)
        #: The results of the collectives, once they have started.
        self.works: list[Any] = []

    def flats(self) -> list[Tensor]:
        """Return the tensors to reduce, after `views` were set."""
        tensors = [self.flat] if self.joined else []
        for number in self.separate:
            view = self.views[number]
            assert view is not None
            tensors.append(view)
        return tensors

    def forget(self) -> None:
        """Release the separate gradients."""
        self.works = []
        for number in self.separate:
            self.views[number] = None
