"""Fourier transforms, composed of a few operators: complex to complex, real to complex (along one
or several dimensions), complex to real.
"""

from __future__ import annotations

import math

from candelabra import _C, dispatch_hooks
from candelabra.catalogue import OPERATORS
from candelabra.composite.movement.views import wrap_dim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor

_c2c = OPERATORS["_fft_c2c"]
_r2c = OPERATORS["_fft_r2c"]
_r2c_several = OPERATORS["_fft_r2c_nd"]
_c2r = OPERATORS["_fft_c2r"]


def _scale(norm: str | None, points: int, forward: bool) -> float:
    """Return the factor that the normalization multiplies results by."""
    mode = "backward" if norm is None else norm
    if mode not in ("backward", "ortho", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}": it has to be "backward", "ortho" or "forward"')
    if mode == "ortho":
        return 1 / math.sqrt(points) if points else 1.0
    return 1 / points if points and (mode == "forward") == forward else 1.0


def _promoted(input: Tensor, name: str, complex_: bool) -> Tensor:
    """Return the tensor in a dtype that can be transformed: integers become the default dtype."""
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    input = dispatch_hooks.in_full_precision(input)
    dtype = input.dtype
    if dtype.itemsize < (8 if dtype.is_complex else 4) and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}(): Unsupported dtype {dtype}: convert with .to(candelabra.float32)")
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = _C.get_default_dtype()
    if complex_:
        dtype = dtype.to_complex()
    return input if dtype is input.dtype else OPERATORS["_to_copy"](input, dtype=dtype)


def _resized(input: Tensor, dim: int, n: int) -> Tensor:
    """Return the first n elements along a dimension, padded with zeros."""
    length = input.shape[dim]
    if n < length:
        return OPERATORS["narrow"](input, dim, 0, n)
    if n == length:
        return input
    shape = list(input.shape)
    shape[dim] = n - length
    return OPERATORS["cat"]([input, input.new_zeros(shape)], dim)


def _check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _given(name: str, out: Tensor | None, result: Tensor) -> Tensor:
    return result if out is None else _C.give_to_out(name, out, result)


def _axis(name: str, x: Tensor, dim: int) -> int:
    if x.ndim == 0:
        raise IndexError(f"{name}(): Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, x.ndim)


def _one(
    name: str, input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, out: Tensor | None
) -> Tensor:
    x = _promoted(input, name, True)
    axis = _axis(name, x, dim)
    if n is not None:
        _check_points(n)
        x = _resized(x, axis, n)
    _check_points(x.shape[axis])
    return _given(name, out, _c2c(x, [axis], forward, _scale(norm, x.shape[axis], forward)))


def fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the discrete Fourier transform along a dimension: ``X[k] = sum_j x[j] exp(-2 pi i j k
    / n)``.

    Parameters
    ----------
    input : Tensor
        Real or complex, not of half precision.
    n : int, optional
        The length of the transform. The input is truncated or padded with zeros to it.
    dim : int
        The dimension.
    norm : str, optional
        ``"forward"`` divides by n, ``"ortho"`` by its square root, ``"backward"`` (the default) by
        nothing.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        Complex.

    Raises
    ------
    RuntimeError
        If the length is less than 1, or `norm` is invalid.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.fft(candelabra.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _one("fft", input, n, dim, norm, True, out)


def ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of :func:`candelabra.fft.fft`; with ``norm="backward"`` it divides by n.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.ifft(candelabra.tensor([3.0, -1.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    return _one("ifft", input, n, dim, norm, False, out)


def _check_real(name: str, input: Tensor) -> None:
    if isinstance(input, _C.Tensor) and input.dtype.is_complex:
        kind = "real-valued" if name[-1] in "2n" else "real"
        raise RuntimeError(f"{name} expects a {kind} input tensor, but got {input.dtype}")


def rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the Fourier transform of a real signal: the first n // 2 + 1 coefficients. The others
    are conjugates of these.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.rfft(candelabra.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _given("rfft", out, _real(input, n, dim, norm, True, "rfft"))


def _real(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, name: str) -> Tensor:
    _check_real(name, input)
    x = _promoted(input, name, False)
    axis = _axis(name, x, dim)
    if n is not None:
        _check_points(n)
        x = _resized(x, axis, n)
    _check_points(x.shape[axis])
    result = _r2c(x, axis, _scale(norm, x.shape[axis], forward))
    return result if forward else OPERATORS["conj_physical"](result)


def irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of :func:`candelabra.fft.rfft`: n real numbers. By default, n is twice
    the number of coefficients minus 2.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.irfft(candelabra.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return _given("irfft", out, _to_real(input, n, dim, norm, False, "irfft"))


def _to_real(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, name: str) -> Tensor:
    x = _promoted(input, name, True)
    axis = _axis(name, x, dim)
    points = 2 * (x.shape[axis] - 1) if n is None else n
    _check_points(points)
    x = _resized(x, axis, points // 2 + 1)
    if forward:
        x = OPERATORS["conj_physical"](x)
    return _c2r(x, axis, points, _scale(norm, points, forward))


def hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the Fourier transform of a Hermitian-symmetric signal, given by its first half. The
    result is real.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.hfft(candelabra.tensor([2.5 + 0j, -0.5 - 0.5j, -0.5 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return _given("hfft", out, _to_real(input, n, dim, norm, True, "hfft"))


def ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of :func:`candelabra.fft.hfft`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.ihfft(candelabra.tensor([1.0, 2.0, 3.0, 4.0])).real
    tensor([ 2.5000, -0.5000, -0.5000])
    """
    return _given("ihfft", out, _real(input, n, dim, norm, False, "ihfft"))


# ---- several dimensions


def _shape_and_dims(
    name: str, input: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None
) -> tuple[list[int | None], list[int]]:
    """Return the sizes (None: unchanged) and the dimensions, checked."""
    s = [s] if isinstance(s, int) else s
    dim = [dim] if isinstance(dim, int) else dim
    if dim is not None:
        dims = [wrap_dim(d, input.ndim) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"{name}(): FFT dims must be unique, but got {list(dim)}")
        if s is not None and len(s) != len(dims):
            raise RuntimeError(
                f"{name}(): When given, dim and shape arguments must have the same length, but got {list(dim)} and {list(s)}"
            )
    elif s is not None:
        if len(s) > input.ndim:
            raise RuntimeError(
                f"{name}(): Got shape with {len(s)} values but input tensor only has {input.ndim} dimensions."
            )
        dims = list(range(input.ndim - len(s), input.ndim))
    else:
        dims = list(range(input.ndim))
    sizes: list[int | None] = [None if n == -1 else n for n in s] if s is not None else [None] * len(dims)
    for n in sizes:
        if n is not None:
            _check_points(n)
    return sizes, dims


def _fill(x: Tensor, sizes: list[int | None], dims: list[int]) -> Tensor:
    for n, d in zip(sizes, dims):
        if n is not None:
            x = _resized(x, d, n)
    for d in dims:
        _check_points(x.shape[d])
    return x


def _points(x: Tensor, dims: list[int]) -> int:
    return math.prod(x.shape[d] for d in dims)


def _several(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool, out: Tensor | None) -> Tensor:
    x = _promoted(input, name, True)
    sizes, dims = _shape_and_dims(name, x, s, dim)
    x = _fill(x, sizes, dims)
    scale = _scale(norm, _points(x, dims), forward)
    return _given(name, out, _c2c(x, dims, forward, scale) if dims else OPERATORS["clone"](x))


def fftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the transform along several dimensions, all by default; see
    :func:`candelabra.fft.fft`.

    Parameters
    ----------
    input : Tensor
        Real or complex.
    s : sequence of int, optional
        The lengths of the transform, of the last dimensions if `dim` is not given. -1 keeps the
        size.
    dim : sequence of int, optional
        The dimensions.
    norm : str, optional
        ``"forward"`` divides by the number of elements, ``"ortho"`` by its square root,
        ``"backward"`` by nothing.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.fftn(candelabra.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _several("fftn", input, s, dim, norm, True, out)


def ifftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of :func:`candelabra.fft.fftn`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.ifftn(candelabra.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _several("ifftn", input, s, dim, norm, False, out)


def rfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the Fourier transform of a real signal along several dimensions. The last one has
    only the first half of the coefficients.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.rfftn(candelabra.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _given("rfftn", out, _real_several("rfftn", input, s, dim, norm, True))


def _real_several(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    _check_real(name, input)
    x = _promoted(input, name, False)
    sizes, dims = _shape_and_dims(name, x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _fill(x, sizes, dims)
    result = _r2c_several(x, dims, _scale(norm, _points(x, dims), forward))
    return result if forward else OPERATORS["conj_physical"](result)


def irfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of :func:`candelabra.fft.rfftn`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.irfftn(candelabra.fft.rfftn(candelabra.ones(2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _given("irfftn", out, _to_real_several("irfftn", input, s, dim, norm, False))


def _to_real_several(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(input, name, True)
    sizes, dims = _shape_and_dims(name, x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    points = sizes[-1]
    if points is None:
        points = 2 * (x.shape[dims[-1]] - 1)
    _check_points(points)
    x = _fill(x, [*sizes[:-1], points // 2 + 1], dims)
    scale = _scale(norm, _points(x, dims[:-1]) * points, forward)
    if forward:
        x = OPERATORS["conj_physical"](x)
    if len(dims) > 1:
        x = _c2c(x, dims[:-1], False, 1.0)
    return _c2r(x, dims[-1], points, scale)


def hfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the real Fourier transform of a Hermitian-symmetric signal along several dimensions;
    see :func:`candelabra.fft.hfft`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.hfftn(candelabra.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _given("hfftn", out, _to_real_several("hfftn", input, s, dim, norm, True))


def ihfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of :func:`candelabra.fft.hfftn`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.ihfftn(candelabra.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _given("ihfftn", out, _real_several("ihfftn", input, s, dim, norm, False))


# ---- two dimensions


def _two(name: str, base: Any, sentence: str) -> Any:
    def transform(
        input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return base(input, s, dim, norm, out=out)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{sentence} along two dimensions, the last ones by default; see :func:`candelabra.fft.{base.__name__}`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.{name}(candelabra.ones(1, 3, 3)).shape
    candelabra.Size([1, 3, {_WIDTHS.get(name, 3)}])
    """
    return transform


_WIDTHS = {"rfft2": 2, "ihfft2": 2, "irfft2": 4, "hfft2": 4}
fft2 = _two("fft2", fftn, "Compute the transform")
ifft2 = _two("ifft2", ifftn, "Compute the inverse transform")
rfft2 = _two("rfft2", rfftn, "Compute the transform of real numbers")
irfft2 = _two("irfft2", irfftn, "Compute the inverse transform to real numbers")
hfft2 = _two("hfft2", hfftn, "Compute the real transform")
ihfft2 = _two("ihfft2", ihfftn, "Compute the inverse of the real transform")
