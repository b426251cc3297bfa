"""Distances and similarities of rows."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..movement.broadcasting import broadcast_shape
from ..registration import decomposes, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_unsqueeze = OPERATORS["unsqueeze"]


_COMPUTE_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@function(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Compute the p-norm distances between all pairs of rows of two batches of matrices.

    Parameters
    ----------
    x1, x2 : Tensor
        Of shapes (…, P, M) and (…, R, M).
    p : float
        The order of the norm, at least 0.
    compute_mode : str, optional
        One of PyTorch's modes; does not affect the result.

    Returns
    -------
    Tensor
        Of shape (…, P, R).

    Raises
    ------
    ValueError
        No such `compute_mode`.
    RuntimeError
        Not floating point, different dtypes or numbers of columns, or a negative `p`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cdist(candelabra.zeros(1, 2), candelabra.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    if x1.ndim < 2 or x2.ndim < 2:
        raise RuntimeError("cdist only supports at least 2D tensors")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if compute_mode not in (None, *_COMPUTE_MODES):
        raise ValueError(
            f"{compute_mode} is not a valid value for compute_mode; it is one of {', '.join(_COMPUTE_MODES)}"
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    if x1.dtype != x2.dtype:
        raise RuntimeError(
            f"cdist: expected tensors of one dtype but found {x1.dtype} and {x2.dtype}; convert one with .to(dtype)"
        )
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if x1.shape[-1] == 0:  # distances of empty vectors, for which some norms have no identity
        p = 2.0
    batch = broadcast_shape(x1.shape[:-2], x2.shape[:-2])
    first, second = (OPERATORS["expand"](x, (*batch, *x.shape[-2:])) for x in (x1, x2))
    return OPERATORS["_cdist_forward"](first, second, float(p))


@decomposes("_cdist_forward")
def _cdist_forward(x1: Tensor, x2: Tensor, p: float) -> Any:
    return OPERATORS["linalg_vector_norm"](_unsqueeze(x1, -2) - _unsqueeze(x2, -3), p, [-1])


@decomposes("_pdist_forward")
def _pdist_forward(self: Tensor, p: float) -> Any:
    rows = self.shape[0]
    places = OPERATORS["arange"](0, rows, 1, dtype=_C.int64, device=self.device)
    behind = OPERATORS["gt"](places, _unsqueeze(places, -1))
    return OPERATORS["masked_select"](OPERATORS["_cdist_forward"](self, self, p), behind)


@decomposes("_cdist_backward")
def _cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor, p: float) -> Any:
    difference = _unsqueeze(wide(x1), -2) - _unsqueeze(wide(x2), -3)
    slope, distance = _unsqueeze(wide(grad), -1), _unsqueeze(wide(result), -1)
    sign, size = OPERATORS["sign"](difference), OPERATORS["abs"](difference)
    same = OPERATORS["eq"](distance, 0)
    if p == 0:
        change = difference * 0.0 * slope
    elif p == 1:
        change = sign * slope
    elif p == math.inf:
        change = OPERATORS["where"](OPERATORS["eq"](size, distance), sign * slope, 0.0)
    else:
        apart = OPERATORS["masked_fill"](distance, same, 1.0)
        if p == 2:
            change = difference * (slope / apart)
        else:
            equal = OPERATORS["eq"](size, 0)
            powers = OPERATORS["pow"](OPERATORS["masked_fill"](size, equal, 1.0), p - 1)
            change = OPERATORS["masked_fill"](powers, equal, 0.0) * sign * (slope / OPERATORS["pow"](apart, p - 1))
        change = OPERATORS["masked_fill"](change, same, 0.0)
    return narrow_to(OPERATORS["sum"](change, -2), x1.dtype)


@function(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Compute the cosine similarity of vectors along a dimension.

    Parameters
    ----------
    x1, x2 : Tensor
        Broadcast to one shape.
    dim : int
        The dimension of the vectors.
    eps : float
        The lower bound of the norms in the denominator.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cosine_similarity(candelabra.tensor([3.0, 4.0]), candelabra.tensor([3.0, 4.0]), dim=0)
    tensor(1.)
    """
    common = _C.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    x1, x2 = x1.to(common), x2.to(common)
    norm = OPERATORS["linalg_vector_norm"]
    lengths = [OPERATORS["clamp"](norm(x, 2, [dim], True), min=eps) for x in (x1, x2)]
    return OPERATORS["sum"]((x1 / lengths[0]) * (x2 / lengths[1]), dim)
