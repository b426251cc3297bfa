"""Looking up rows of a table, and classes as vectors of zeros and a one."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, no_grad, ops

_embedding = ops.embedding
_vector_norm = ops.linalg_vector_norm


def embedding_options(scale_grad_by_freq: bool, sparse: bool) -> None:
    """Raise for the options of PyTorch's embedding that Candelabra does not have."""
    if scale_grad_by_freq:
        raise NotImplementedError("embedding: scale_grad_by_freq=True is not supported; divide the gradient by the counts yourself")
    if sparse:
        raise NotImplementedError("embedding: sparse=True is not supported, as there are no sparse tensors; use sparse=False")


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` with the numbers `input`.

    Parameters
    ----------
    input
        Whole numbers of any shape.
    weight
        (rows, columns).
    padding_idx
        A row whose gradient stays zero.
    max_norm, norm_type
        Rows that are looked up are first scaled down, in place, to have at most this norm.

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
    if scale_grad_by_freq or sparse:
        embedding_options(scale_grad_by_freq, sparse)
    if padding_idx is None:
        row = -1
    else:
        count = weight.shape[0]
        assert -count <= padding_idx < count, "Padding_idx must be within num_embeddings"
        row = padding_idx % count
    if max_norm is not None:
        with no_grad():
            numbers = input.detach().reshape(-1)
            if numbers.numel():
                table = weight.detach()
                rows = table.index_select(0, numbers)
                norm = _vector_norm(rows, norm_type, 1, True)
                factor = candelabra.where(norm > max_norm, max_norm / (norm + 1e-7), 1.0)
                # A row that is looked up twice is written twice, with the same numbers.
                table.index_copy_(0, numbers, rows * factor)
    return _embedding(weight, input, row)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Vectors of zeros with a one at the number of the class; `num_classes` is one more than the largest when not given.

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


__all__ = ["embedding", "one_hot"]
