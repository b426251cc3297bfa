"""Batch sequences of different lengths by padding or packing."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any, Self

import candelabra
from candelabra import Tensor

_Fields = namedtuple("_Fields", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """Store a batch of sequences of different lengths, ordered by time step.

    Recurrent layers accept it instead of a padded batch.

    Create it with `pack_padded_sequence` or `pack_sequence`.

    Parameters
    ----------
    data
        The first elements of all sequences, longest sequence first, then the second elements of the
        sequences that have one, and so on.
    batch_sizes
        Number of sequences at each time step; int64, on the CPU.
    sorted_indices, unsorted_indices
        The permutation that sorts the sequences by length, and its inverse. None if they were
        already sorted.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([candelabra.tensor([1, 2, 3]), candelabra.tensor([4, 5])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            # The legacy form, PackedSequence((data, batch_sizes)).
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError(
                    f"data must be a pair of data and batch_sizes when batch_sizes is not given, but got {type(data)}"
                )
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
                "instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                f"Got a batch_sizes on {batch_sizes.device}"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move or convert the data like `Tensor.to`.

        The permutations follow the device; batch_sizes stays on the CPU.
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        # The permutations keep their dtype and follow the device only.
        move = {"device": data.device, "non_blocking": kwargs.get("non_blocking", False)}
        indices = [
            None if index is None else index.to(**move) for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self) -> PackedSequence:
        """Copy the data to pinned memory."""
        indices = [
            None if index is None else index.pin_memory() for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to a CUDA device."""
        device = args[0] if args else kwargs.pop("device", "cuda")
        return self.to(device if not isinstance(device, int) else f"cuda:{device}", *args[1:], **kwargs)

    def cpu(self) -> PackedSequence:
        """Move to the CPU."""
        return self.to("cpu")

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self.to(candelabra.float64)

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self.to(candelabra.float32)

    def half(self) -> PackedSequence:
        """Convert the data to float16."""
        return self.to(candelabra.float16)

    def long(self) -> PackedSequence:
        """Convert the data to int64."""
        return self.to(candelabra.int64)

    def int(self) -> PackedSequence:
        """Convert the data to int32."""
        return self.to(candelabra.int32)

    def short(self) -> PackedSequence:
        """Convert the data to int16."""
        return self.to(candelabra.int16)

    def char(self) -> PackedSequence:
        """Convert the data to int8."""
        return self.to(candelabra.int8)

    def byte(self) -> PackedSequence:
        """Convert the data to uint8."""
        return self.to(candelabra.uint8)

    @property
    def is_cuda(self) -> bool:
        """Return whether the data is on a CUDA device."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Return whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation, or None for None.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils.rnn import invert_permutation
    >>> invert_permutation(candelabra.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = candelabra.arange(permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return candelabra.empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch.

    Parameters
    ----------
    input
        (T, N, ...), or (N, T, ...) with `batch_first`. T is at least the longest length.
    lengths
        Length of each sequence: a list, or a tensor on the CPU.
    enforce_sorted
        Whether the sequences must already be sorted by decreasing length. Otherwise they are sorted
        here.

    Raises
    ------
    RuntimeError
        If a length is not positive, the lengths are not sorted as required, or their number differs
        from that of the sequences.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    >>> padded = candelabra.tensor([[1, 2, 0], [3, 4, 5]])
    >>> packed = pack_padded_sequence(padded, [2, 3], batch_first=True, enforce_sorted=False)
    >>> packed.data
    tensor([3, 1, 4, 2, 5])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 0],
            [3, 4, 5]]), tensor([2, 3]))
    """
    if not isinstance(lengths, Tensor):
        sizes = candelabra.tensor([int(length) for length in lengths], dtype=candelabra.int64, device="cpu")
    elif lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got 1D {lengths.device} {lengths.dtype} tensor"
        )
    else:
        sizes = lengths.to(candelabra.int64)
    sorted_indices = None
    if not enforce_sorted:
        sizes, sorted_indices = sizes.sort(descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    numbers = sizes.tolist()
    if input.ndim < 2 or sizes.ndim != 1 or len(numbers) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(numbers)} (batch_size={input.shape[1] if input.ndim > 1 else 0})"
        )
    if not numbers or input.shape[0] == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if min(numbers) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in itertools.pairwise(numbers)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
        )
    if numbers[0] > input.shape[0]:
        raise RuntimeError(f"Expected the longest length to be at most {input.shape[0]}, but got {numbers[0]}")
    # All valid elements, in time order.
    times = candelabra.arange(numbers[0], device="cpu")
    there = times.unsqueeze(1) < sizes.unsqueeze(0)
    batch_sizes = there.sum(1)
    flat = input[: numbers[0]].flatten(0, 1)
    data = flat.index_select(0, there.flatten().nonzero().squeeze(1).to(input.device))
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pad a packed batch: the inverse of `pack_padded_sequence`.

    Parameters
    ----------
    padding_value
        Value after the end of each sequence.
    total_length
        Length to pad to, at least that of the longest sequence.

    Returns
    -------
    padded, lengths
        (T, N, ...), or (N, T, ...) with `batch_first`, in the order before packing. The lengths are
        int64.

    Raises
    ------
    ValueError
        If `total_length` is less than the length of the longest sequence.
    """
    sizes = sequence.batch_sizes
    longest, batch = sizes.numel(), int(sizes[0])
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    there = candelabra.arange(batch, device=sizes.device).unsqueeze(0) < sizes.unsqueeze(1)
    rows = (total_length or longest) * batch
    data = sequence.data
    padded = data.new_full((rows, *data.shape[1:]), padding_value)
    padded = padded.index_copy(0, there.flatten().nonzero().squeeze(1).to(data.device), data)
    padded = padded.reshape(-1, batch, *data.shape[1:])
    lengths = there.sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.cpu())
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences (L, ...) of different lengths to one batch.

    Parameters
    ----------
    sequences
        Tensors that differ only in their first dimension, or one tensor (a batch of sequences).
    batch_first
        Whether the result is (N, T, ...) rather than (T, N, ...).
    padding_value, padding_side
        Fill value, and whether it goes after (``"right"``) or before (``"left"``) shorter
        sequences.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils.rnn import pad_sequence
    >>> pad_sequence([candelabra.tensor([1, 2, 3]), candelabra.tensor([4])], batch_first=True, padding_side="left")
    tensor([[1, 2, 3],
            [0, 0, 4]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    rows = tuple(sequences)
    if not rows:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(row.shape[0] for row in rows)
    out = []
    for row in rows:
        if row.shape[1:] != rows[0].shape[1:]:
            raise RuntimeError(
                f"pad_sequence: sequences must have the same sizes after the first, but got {list(rows[0].shape)} and {list(row.shape)}"
            )
        missing = longest - row.shape[0]
        if missing:
            filler = row.new_full((missing, *row.shape[1:]), padding_value)
            row = candelabra.cat([row, filler] if padding_side == "right" else [filler, row])
        out.append(row)
    return candelabra.stack(out, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded batch, as one view per length.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(candelabra.tensor([[1, 2, 3], [4, 0, 0]]), candelabra.tensor([3, 1]), batch_first=True)
    [tensor([1, 2, 3]), tensor([4])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (L, ...).

    With `enforce_sorted` they must be sorted by decreasing length.
    """
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Split a packed batch into its sequences: the inverse of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def permute_states(states: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Permute the states of a batch along `dim`."""
    return states.index_select(dim, permutation)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]  # fmt: skip
