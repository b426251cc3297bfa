"""Products of tensors of any ranks, by matrix products with as few copies as possible."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.dispatch_hooks import computed

from ..elementwise.elementwise import as_it_was, conjugate
from ..factors_by_position import takes_beta_first
from ..keyword_names import also_named
from ..movement.broadcasting import broadcast_shape
from ..movement.views import reshape
from ..registration import decomposes, function, refuse_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Number

_mm = OPERATORS["mm"]
_bmm = OPERATORS["bmm"]
_mv = OPERATORS["mv"]
_dot = OPERATORS["dot"]
_addmm = OPERATORS["addmm"]
_expand = OPERATORS["expand"]
_unsqueeze = OPERATORS["unsqueeze"]
_squeeze = OPERATORS["squeeze"]
_transpose = OPERATORS["transpose"]
_linear = OPERATORS["linear"]
_to_copy = OPERATORS["_to_copy"]
_relu = OPERATORS["relu"]
_gelu = OPERATORS["gelu"]


@decomposes("mv")
def mv(self: Tensor, vec: Tensor) -> Tensor:
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})"
        )
    return _squeeze(_mm(self, _unsqueeze(vec, 1)), 1)


@decomposes("_addmm_activation")
def addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, use_gelu: bool = False
) -> Tensor:
    product = _addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return _gelu(product) if use_gelu else _relu(product)


@decomposes("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.ndim != 2 or input.ndim == 0:
        raise RuntimeError(
            f"linear(): expected an input of at least one dimension and a 2-D weight, got {list(input.shape)}, {list(weight.shape)}"
        )
    if input.dtype._float8_format is not None:
        return _float8_linear(input, weight, bias)
    features = input.shape[-1]
    rows = (
        input
        if input.ndim == 2
        else reshape(input, (input.numel() // features if features else _rows(input), features))
    )
    transposed = _transpose(weight, 0, 1)
    result = _mm(rows, transposed) if bias is None else _addmm(bias, rows, transposed)
    return result if input.ndim == 2 else reshape(result, (*input.shape[:-1], weight.shape[0]))


def _float8_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute a linear layer in float32, and round once to the float8 dtype of the input."""
    if input.dtype is _C.float8_e8m0fnu:
        raise NotImplementedError("\"linear\" not implemented for 'Float8_e8m0fnu'")
    operands = [_to_copy(x, dtype=_C.float32) for x in ((input, weight) if bias is None else (input, weight, bias))]
    return _to_copy(_linear(*operands), dtype=input.dtype)


def _rows(input: Tensor) -> int:
    count = 1
    for n in input.shape[:-1]:
        count *= n
    return count


@function(out="exact")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply matrices, vectors, or batches of matrices.

    Parameters
    ----------
    input, other : Tensor
        Of one dtype. A vector is a row on the left and a column on the right; more than two
        dimensions are batches of matrices, whose batch dimensions are broadcast.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        The product, without the dimensions that stood for vectors.

    Raises
    ------
    RuntimeError
        If an argument has no dimension, or the inner sizes differ.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.matmul(candelabra.tensor([[1, 2], [3, 4]]), candelabra.tensor([1, 1]))
    tensor([3, 7])
    """
    if out is not None:
        return _C.give_to_out("matmul", out, _matmul(input, other))
    try:
        if input.ndim == 2 == other.ndim:
            return _mm(input, other)
        other.ndim
    except AttributeError:
        refuse_others("matmul", input=input, other=other)
        raise
    return _matmul(input, other)


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    left, right = a.ndim, b.ndim
    if left == 2 and right == 2:
        return _mm(a, b)
    if left == 0 or right == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    if right == 1:
        if left == 1:
            return _dot(a, b)
        if left == 2:
            return _mv(a, b)
        _check_inner(a, b, a.shape[-1], b.shape[0])
        if a.is_contiguous():
            return reshape(_mv(reshape(a, (_rows(a), a.shape[-1])), b), a.shape[:-1])
        return _squeeze(_matmul(a, _unsqueeze(b, 1)), -1)
    if left == 1:
        if right == 2:
            _check_inner(a, b, a.shape[0], b.shape[0])
            return _squeeze(_mm(_unsqueeze(a, 0), b), 0)
        return _squeeze(_matmul(_unsqueeze(a, 0), b), -2)
    *batch, rows, inner = a.shape
    *batch_b, inner_b, columns = b.shape
    if inner != inner_b:
        _check_inner(a, b, inner, inner_b)
    if right == 2:
        # One large product instead of a batch of small ones.
        return _linear(a, _transpose(b, 0, 1))
    if batch != batch_b:
        try:
            batch = [*broadcast_shape(batch, batch_b)]
        except RuntimeError:
            raise RuntimeError(
                f"matmul(): the batch dimensions {list(a.shape[:-2])} and {list(b.shape[:-2])} of shapes {list(a.shape)} and "
                f"{list(b.shape)} cannot be broadcast together"
            ) from None
        a = _expand(a, (*batch, rows, inner))
        b = _expand(b, (*batch, inner, columns))
    elif left == 3:
        return _bmm(a, b)
    count = math.prod(batch)
    product = _bmm(reshape(a, (count, rows, inner)), reshape(b, (count, inner, columns)))
    return reshape(product, (*batch, rows, columns))


def _check_inner(a: Tensor, b: Tensor, inner_a: int, inner_b: int) -> None:
    if inner_a != inner_b:
        if a.ndim <= 2 and b.ndim <= 2:
            rows = "x".join(map(str, a.shape if a.ndim == 2 else (1, *a.shape)))
            columns = "x".join(map(str, b.shape))
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows} and {columns})")
        raise RuntimeError(
            f"matmul(): the last dimension of the first argument must be the last but one of the second, but got shapes {list(a.shape)} "
            f"and {list(b.shape)}"
        )


@function(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the outer product of two vectors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.outer(candelabra.tensor([1, 2]), candelabra.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    for name, t in (("self", input), ("vec2", vec2)):
        if t.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {t.ndim}-D")
    product = OPERATORS["mul"]
    return product(_unsqueeze(input, 1), vec2) if out is None else product(_unsqueeze(input, 1), vec2, out=out)


@function(out="exact")
@computed("widest on accelerators")
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inner product over the last dimensions of two tensors; a scalar multiplies.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.inner(candelabra.tensor([1, 2]), candelabra.tensor([3, 4]))
    tensor(11)
    """
    if input.ndim == 0 or other.ndim == 0:
        result = input * other
    elif input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}"
        )
    else:
        result = tensordot(input, other, ([-1], [-1]))
    return result if out is None else _C.give_to_out("inner", out, result)


@function(out="exact")
@computed("widest on accelerators")
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the dot product of two vectors; the first is conjugated.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.vdot(candelabra.tensor([1j]), candelabra.tensor([1j]))
    tensor(1.+0.j)
    """
    result = _dot(conjugate(input), other)
    return result if out is None else _C.give_to_out("vdot", out, result)


@function(method=False, out="exact")
@computed("widest on accelerators")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Contract several dimensions of two tensors.

    Parameters
    ----------
    a, b : Tensor
    dims : int or pair of lists of int
        The last `dims` dimensions of `a` with the first of `b`; or the dimensions of each.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        With the other dimensions of `a`, then those of `b`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.tensordot(candelabra.ones(2, 3), candelabra.ones(3, 2), dims=1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        others, common_shape = a.shape[: a.ndim - dims], b.shape[:dims]
        if out is None and a.shape[a.ndim - dims :] == common_shape:
            # They are in the order of a matrix product.
            common, rest = math.prod(common_shape), b.shape[dims:]
            return reshape(
                _mm(reshape(a, (math.prod(others), common)), reshape(b, (common, math.prod(rest)))), (*others, *rest)
            )
        dims_a, dims_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(dims_a) != len(dims_b):
        raise RuntimeError(f"both dimension lists should have same length, got {len(dims_a)} and {len(dims_b)}")
    dims_a = [d + a.ndim if d < 0 else d for d in dims_a]
    dims_b = [d + b.ndim if d < 0 else d for d in dims_b]
    for d, e in zip(dims_a, dims_b):
        if a.shape[d] != b.shape[e] and 1 not in (a.shape[d], b.shape[e]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[d]} in dim {d} and second has size {b.shape[e]} in dim {e}"
            )
    # A size of 1 against another: the sum over the other operand alone.
    wider_a = [d for d, e in zip(dims_a, dims_b) if a.shape[d] != b.shape[e] and b.shape[e] == 1]
    wider_b = [e for d, e in zip(dims_a, dims_b) if a.shape[d] != b.shape[e] and a.shape[d] == 1]
    if wider_a:
        a = OPERATORS["sum"](a, wider_a, True, dtype=a.dtype)
    if wider_b:
        b = OPERATORS["sum"](b, wider_b, True, dtype=b.dtype)
    free_a = [d for d in range(a.ndim) if d not in dims_a]
    free_b = [d for d in range(b.ndim) if d not in dims_b]
    rows, columns, common = 1, 1, 1
    for d in free_a:
        rows *= a.shape[d]
    for d in free_b:
        columns *= b.shape[d]
    for d in dims_a:
        common *= a.shape[d]
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    left = reshape(OPERATORS["permute"](a, free_a + dims_a), (rows, common))
    right = reshape(OPERATORS["permute"](b, dims_b + free_b), (common, columns))
    result = reshape(_mm(left, right), shape)
    return result if out is None else _C.give_to_out("tensordot", out, result)


def _weighted(product: Tensor, input: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return ``beta * input + alpha * product``. For integers the factors are truncated, as in
    PyTorch.
    """
    if not product.dtype.is_complex:
        for factor in (beta, alpha):
            if isinstance(factor, complex):
                raise RuntimeError(
                    f"value cannot be converted to type {product.dtype.name} without overflow: {factor} is complex"
                )
        if not product.dtype.is_floating_point:
            alpha, beta = int(alpha), int(beta)  # type: ignore[arg-type]  # not complex
            if product.dtype is _C.bool:
                alpha, beta = bool(alpha), bool(beta)
    alpha, beta = (
        int(factor) if isinstance(factor, bool) and product.dtype is not _C.bool else factor for factor in (alpha, beta)
    )
    result = product * alpha if alpha != 1 else product
    if beta != 0:
        result = OPERATORS["add"](result, input if beta == 1 else input * beta)
    return result


@function(out="exact whole")
@computed("lower on accelerators")
@takes_beta_first
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Compute ``beta * input + alpha * (mat @ vec)``. With ``beta=0``, `input` is ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.addmv(candelabra.ones(2), candelabra.eye(2), candelabra.tensor([1.0, 2.0]))
    tensor([2., 3.])
    """
    result = _weighted(_mv(mat, vec), input, beta, alpha)
    return result if out is None else _C.give_to_out("addmv", out, result, input)


@function(out="whole")
@computed("lower on accelerators")
@takes_beta_first
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Compute ``beta * input + alpha * outer(vec1, vec2)``. With ``beta=0``, `input` is ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.addr(candelabra.zeros(2, 2), candelabra.ones(2), candelabra.ones(2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    product = outer(vec1, vec2)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool) and product.dtype is not _C.bool:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(factor, (float, complex)) and not (product.dtype.is_floating_point or product.dtype.is_complex):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    result = _weighted(product, input, beta, alpha)
    return result if out is None else _C.give_to_out("addr", out, result, input)


@function(out="exact whole")
@computed("lower")
@takes_beta_first
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Compute ``beta * input + alpha * sum(batch1 @ batch2)``, summed over the batch.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.addbmm(candelabra.zeros(1, 1), candelabra.ones(2, 1, 3), candelabra.ones(2, 3, 1))
    tensor([[6.]])
    """
    products = _bmm(batch1, batch2)
    result = _weighted(OPERATORS["sum"](products, 0, dtype=products.dtype), input, beta, alpha)
    return result if out is None else _C.give_to_out("addbmm", out, result, input)


def _in_place(name: str, compute: Any, first: str, second: str) -> None:
    @also_named(**{first: "first", second: "second"})
    @takes_beta_first
    def in_place(self: Tensor, first: Any, second: Any, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        return self.copy_(compute(as_it_was(self), first, second, beta=beta, alpha=alpha))

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"Compute :func:`candelabra.{compute.__name__}` in place."
    function(package=False)(in_place)


_in_place("addmv_", addmv, "mat", "vec")
_in_place("addr_", addr, "vec1", "vec2")
_in_place("addbmm_", addbmm, "batch1", "batch2")


@function(method=False)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply matrices in the order that needs the fewest multiplications.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.chain_matmul(candelabra.eye(2), candelabra.eye(2), candelabra.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead. (argument {i})")
    count = len(matrices)
    if count == 1:
        return matrices[0]
    if count == 2:
        return _mm(*matrices)
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    if count == 3:
        a, b, c, d = sizes
        one, two, three = matrices
        return _mm(_mm(one, two), three) if a * c * (b + d) < b * d * (a + c) else _mm(one, _mm(two, three))
    cost = [[0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            options = [
                (cost[first][k] + cost[k + 1][last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
                for k in range(first, last)
            ]
            cost[first][last], cut[first][last] = min(options)

    def product(first: Any, last: Any) -> Tensor:
        if first == last:
            return matrices[first]
        k = cut[first][last]
        return _mm(product(first, k), product(k + 1, last))

    return product(0, count - 1)


@function(out="whole")
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Kronecker product: every element of `input` times all of `other`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.kron(candelabra.tensor([1, 2]), candelabra.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + tuple(input.shape)
    b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    left = reshape(input, [n for size in a for n in (size, 1)])
    right = reshape(other, [n for size in b for n in (1, size)])
    if ndim > 1 and 1 < b[-1] < 256 and a[-1] > 1:
        # Slices are as long as the result's, one per slice of a factor, so that products are not
        # computed in short pieces.
        line = (a[-1], b[-1])
        left = reshape(left.expand(*left.shape[:-2], *line), (*left.shape[:-2], a[-1] * b[-1]))
        right = reshape(right.expand(*right.shape[:-2], *line), (*right.shape[:-2], a[-1] * b[-1]))
    result = reshape(left * right, [m * n for m, n in zip(a, b)])
    return result if out is None else _C.give_to_out("kron", out, result, input, other)


@function(out="exact apart")
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Compute the cross product of three-dimensional vectors along a dimension of size 3.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cross(candelabra.tensor([1, 0, 0]), candelabra.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    if input.ndim != other.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, but the shapes are {list(input.shape)} and {list(other.shape)}"
        )
    if dim is None:
        threes = [d for d, n in enumerate(input.shape) if n == 3]
        if not threes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = threes[0]
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    roll = _C.Tensor.roll
    result = roll(input, -1, dim) * roll(other, -2, dim) - roll(input, -2, dim) * roll(other, -1, dim)
    return result if out is None else _C.give_to_out("cross", out, result, input, other)


@function(method=False)
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute the Frobenius norm over one or two dimensions. Prefer
    ``candelabra.linalg.vector_norm``.

    Parameters
    ----------
    input : Tensor
        Floating point or complex.
    dim : int or sequence of int
        At most two dimensions; an empty list stands for all.
    keepdim : bool
        Whether to keep them, with size 1.
    out : Tensor, optional
        The output tensor.

    Raises
    ------
    RuntimeError
        If there are more than two dimensions, or the dtype is of integers.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.frobenius_norm(candelabra.tensor([[3.0, 4.0]]), (0, 1))
    tensor(5.)
    """
    _C.warn("frobenius_norm is deprecated. Please use `linalg.vector_norm(A, 2., dim, keepdim)` instead")
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(f"frobenius_norm(): Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    compute = OPERATORS["linalg_vector_norm"]
    if out is None:
        return compute(input, 2, dims or None, keepdim)
    return compute(input, 2, dims or None, keepdim, out=out)
