"""Look up rows of an embedding table, singly or in bags, and encode classes as one-hot vectors."""

from __future__ import annotations

import candelabra
from candelabra import _C, Tensor, is_grad_enabled, no_grad, ops

_embedding = ops.embedding
_vector_norm = ops.linalg_vector_norm


def embedding_options(scale_grad_by_freq: bool, sparse: bool) -> None:
    """Raise for the option of PyTorch's embedding that Candelabra does not support."""
    if sparse:
        raise NotImplementedError(
            "embedding: sparse=True is not supported, as there are no sparse tensors; use sparse=False"
        )


def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale rows of `self` in place so that their norm is at most `max_norm`.

    Only the rows in `indices` are scaled.

    Raises
    ------
    RuntimeError
        If the table is not a matrix or the indices are not integers.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.embedding_renorm_(candelabra.tensor([[3.0, 4.0], [6.0, 8.0]]), candelabra.tensor([1]), 5.0, 2.0).round()
    tensor([[3., 4.],
            [3., 4.]])
    """
    if self.ndim != 2:
        raise RuntimeError(f"embedding_renorm_(): expected a matrix, but got shape {list(self.shape)}")
    if indices.dtype not in (candelabra.int64, candelabra.int32):
        raise RuntimeError(f"embedding_renorm_(): expected indices of dtype int64 or int32, but got {indices.dtype}")
    with no_grad():
        numbers = indices.detach().reshape(-1).to(candelabra.int64)
        if numbers.numel():
            table = self.detach()
            rows = table.index_select(0, numbers)
            norm = _vector_norm(rows, norm_type, 1, True)
            factor = candelabra.where(norm > max_norm, max_norm / (norm + 1e-7), 1.0)
            # A row that is looked up twice is written twice with the same values.
            table.index_copy_(0, numbers, rows * factor)
    return self


def _row_of_padding(weight: Tensor, padding_idx: int | None) -> int:
    """Return the padding row as a nonnegative index, or -1 for none."""
    if padding_idx is None:
        return -1
    count = weight.shape[0]
    assert -count <= padding_idx < count, "Padding_idx must be within num_embeddings"
    return padding_idx % count


def _shared_gradient(rows: Tensor, numbers: Tensor, count: int) -> Tensor:
    """Return `rows` unchanged, with each gradient divided by the lookup count of its row."""
    times = candelabra.zeros(count, dtype=rows.dtype, device=rows.device)
    flat = numbers.reshape(-1).to(candelabra.int64)
    times.index_add_(0, flat, candelabra.ones(flat.shape, dtype=rows.dtype, device=rows.device))
    share = (1 / times.index_select(0, flat)).reshape(*numbers.shape, 1)
    return rows * share + (rows * (1 - share)).detach()


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` at the indices `input`.

    Parameters
    ----------
    input
        Integer indices of any shape.
    weight
        (rows, columns).
    padding_idx
        Index of a row that gets no gradient.
    max_norm, norm_type
        The looked-up rows are first scaled down, in place, to at most this norm.
    scale_grad_by_freq
        Whether to divide the gradient of a row by its number of lookups.

    Returns
    -------
    Tensor
        (..., columns).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.embedding(candelabra.tensor([1, 1]), candelabra.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    if sparse:
        embedding_options(scale_grad_by_freq, sparse)
    row = -1 if padding_idx is None else _row_of_padding(weight, padding_idx)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    try:
        rows = _embedding(weight, input, row)
    except IndexError as error:
        raise IndexError(f"index out of range in self: {error}") from None
    if scale_grad_by_freq and weight.requires_grad and is_grad_enabled() and input.numel():
        return _shared_gradient(rows, input, weight.shape[0])
    return rows


MODES = ("sum", "mean", "max")


def bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduce bags of table rows.

    Return the results, the bag of each index, the bag sizes, and the row of each maximum. If the
    mode does not need the last two, they have the values that PyTorch returns.
    """
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-weight.shape[0]} through {weight.shape[0] - 1}, but got {padding_idx}"
        )
    row = _row_of_padding(weight, padding_idx)
    return ops._embedding_bag(
        weight, indices, offsets, mode, per_sample_weights, scale_grad_by_freq, include_last_offset, row
    )


def _flat_bags(input: Tensor, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the indices in one dimension, and where each bag begins."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found "
                f"offsets of type {type(offsets)}"
            )
        length = input.shape[1]
        offsets = (
            candelabra.arange(0, input.numel(), length, dtype=input.dtype, device=input.device)
            if length
            else input.new_zeros(input.shape[0])
        )
        return input.reshape(-1), offsets
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return sums, means or maxima of bags of rows of `weight`.

    Parameters
    ----------
    input
        Row indices: (B, N), one bag per row; or (N), split into bags by `offsets`.
    weight
        (rows, columns).
    offsets
        Start of each bag in a one-dimensional input.
    max_norm, norm_type
        The looked-up rows are first scaled down, in place, to at most this norm.
    scale_grad_by_freq
        Whether to divide the gradient of a row by its number of lookups; not supported for
        ``"max"``.
    mode
        ``"sum"``, ``"mean"`` or ``"max"``.
    per_sample_weights
        Weight of each index, of the shape of `input`; only for ``"sum"``.
    include_last_offset
        Whether `offsets` has one more entry, the end of the last bag.
    padding_idx
        Index of a row that is excluded from the bags and gets no gradient.

    Returns
    -------
    Tensor
        (B, columns); the rows of empty bags are zero.

    Raises
    ------
    ValueError, RuntimeError
        If shapes, dtypes or options are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> table = candelabra.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> F.embedding_bag(candelabra.tensor([0, 1, 1]), table, candelabra.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if weight.dtype == candelabra.int64 and input.is_floating_point():
        _C.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and "
            "should now be `embedding_bag(input, weight, ...)`.",
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have the same shape as the "
            f"input ({list(input.shape)})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    input, offsets = _flat_bags(input, offsets)
    if per_sample_weights is not None and per_sample_weights.ndim == 2:
        per_sample_weights = per_sample_weights.reshape(-1)
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if sparse:
        embedding_options(scale_grad_by_freq, sparse)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='"
            f"{mode}'). Please open a feature request on GitHub."
        )
    if not weight.is_floating_point():
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; but got "
            f"{weight.type()} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type "
            f"{weight.type()} does not equal {per_sample_weights.type()} (while checking arguments for embedding_bag)"
        )
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return bags(weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx)[
        0
    ]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return the one-hot encoding of class indices.

    `num_classes` defaults to one more than the largest index.

    Shapes: input (...), result (..., num_classes); both int64.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.one_hot(candelabra.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if tensor.dtype != candelabra.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return candelabra.zeros((*tensor.shape, num_classes), dtype=candelabra.int64, device=tensor.device)
    if tensor.is_meta and num_classes > 0:
        return candelabra.zeros((*tensor.shape, num_classes), dtype=candelabra.int64, device=tensor.device)
    if int(tensor.amin()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(tensor.amax())
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif num_classes <= largest:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = candelabra.zeros((*tensor.shape, num_classes), dtype=candelabra.int64, device=tensor.device)
    return result.scatter_(-1, tensor.unsqueeze(-1), 1)


__all__ = ["embedding", "embedding_bag", "one_hot"]
