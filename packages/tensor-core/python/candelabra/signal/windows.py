"""``candelabra.signal.windows``: window functions, symmetric ones for filter design or periodic
ones for spectral analysis.

Sources. Cosine sums: Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", 1978; Nuttall, "Some windows with very good sidelobe behavior", 1981. Kaiser window:
Kaiser and Schafer, 1980.
"""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.composite import FUNCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser",
    "nuttall",
]  # fmt: skip


def _make(
    name: str,
    M: int,
    sym: bool,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
    compute: Callable[[Any, Any], Tensor],
) -> Tensor:
    """Check the arguments, and call `compute` with the sample numbers 0 to M - 1 and the period."""
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if not hasattr(M, "__index__"):
        raise TypeError(f"{name}(): argument 'M' (position 1) must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout is not _strided():
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M == 0:
        return FUNCTIONS["empty"]((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    if M == 1:
        return FUNCTIONS["ones"]((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    numbers = FUNCTIONS["arange"](0, M, dtype=dtype, device=device)
    window = compute(numbers, M - 1 if sym else M)
    return window.requires_grad_() if requires_grad else window


def _strided() -> Any:
    from candelabra import strided

    return strided


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an exponential window, ``exp(-|n - center| / tau)``.

    Parameters
    ----------
    M : int
        The length of the window.
    center : float, optional
        The position of the maximum; by default the middle. Only for periodic windows.
    tau : float
        The decay constant.
    sym : bool
        Whether the window is symmetric; else it is one period of a periodic function.
    dtype, layout, device, requires_grad
        As in :func:`candelabra.zeros`; float32 or float64.

    Raises
    ------
    ValueError
        If the length is negative, the dtype is not supported, `tau` is not positive, or `center` is
        given for a symmetric window.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def compute(n: Tensor, last: int) -> Tensor:
        middle = last / 2 if center is None else center
        return OPERATORS["exp"](OPERATORS["abs"](n - middle) * (-1 / tau))

    return _make("exponential", M, sym, dtype, layout, device, requires_grad, compute)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a cosine window, half a period of a sine: ``sin(pi (n + 1/2) / M)``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return _make(
        "cosine",
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
        lambda n, last: OPERATORS["sin"]((n + 0.5) * (math.pi / (last + 1))),
    )


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Gaussian window, ``exp(-(n - middle)^2 / (2 std^2))``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _make(
        "gaussian", M, sym, dtype, layout, device, requires_grad,
        lambda n, last: OPERATORS["exp"](-OPERATORS["square"]((n - last / 2) * (1 / (std * math.sqrt(2))))),
    )  # fmt: skip


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Kaiser window, ``I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta)``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.kaiser(3, beta=1.0)
    tensor([0.7898, 1.0000, 0.7898])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def compute(n: Tensor, last: int) -> Tensor:
        place = n * (2 / last) - 1
        # Rounding may make the radicand negative at the end.
        inside = OPERATORS["clamp"](1 - place * place, min=0)
        peak = FUNCTIONS["full"]((), beta, dtype=n.dtype, device=n.device)
        return _i0(beta * OPERATORS["sqrt"](inside)) / _i0(peak)

    return _make("kaiser", M, sym, dtype, layout, device, requires_grad, compute)


def _i0(x: Tensor) -> Tensor:
    from candelabra import i0

    return i0(x)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a sum of cosines, ``sum_i (-1)^i a_i cos(2 pi i n / (M - 1))``.

    Parameters
    ----------
    M : int
        The length of the window.
    a : sequence of float
        The coefficients.
    sym : bool
        Whether the window is symmetric.
    dtype, layout, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.general_cosine(3, a=[0.46, 0.23, 0.31])
    tensor([0.5400, 1.0000, 0.5400])
    """
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")

    def compute(n: Tensor, last: int) -> Tensor:
        window: Any = None
        for i, coefficient in enumerate(coefficients):
            term = OPERATORS["cos"](n * (2 * math.pi * i / last)) * (-coefficient if i % 2 else coefficient)
            window = term if window is None else window + term
        return window

    return _make("general_cosine", M, sym, dtype, layout, device, requires_grad, compute)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a generalized Hamming window, ``alpha - (1 - alpha) cos(2 pi n / (M - 1))``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.general_hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_cosine(
        M, a=[alpha, 1 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Hamming window, ``0.54 - 0.46 cos(2 pi n / (M - 1))``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Hann window, ``(1 - cos(2 pi n / (M - 1))) / 2``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Blackman window, ``0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1))``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.blackman(3).round(decimals=3).abs()
    tensor([0., 1., 0.])
    """
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Bartlett (triangular) window, ``1 - |2 n / (M - 1) - 1|``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.bartlett(3)
    tensor([0., 1., 0.])
    """
    return _make(
        "bartlett",
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
        lambda n, last: 1 - OPERATORS["abs"](n * (2 / last) - 1),
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Nuttall window: four cosine terms with the lowest sidelobes.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.signal.windows.nuttall(3).round(decimals=3)
    tensor([0., 1., 0.])
    """
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
