"""Short-time Fourier transforms and the older names of window functions."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape
from ..registration import FUNCTIONS, decomposes, function
from ..transformed import all_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

# ---- transforms along several dimensions


@decomposes("_fft_r2c_nd")
def _real_transform(self: Tensor, dim: list[int], scale: float = 1.0) -> Tensor:
    *others, last = dim
    result = OPERATORS["_fft_r2c"](self, last, scale)
    return OPERATORS["_fft_c2c"](result, others, True, 1.0) if others else result


# ---- windows


def _window(name: str, made_by: str, formula: str) -> None:
    def window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        return _make(name, made_by, window_length, periodic, dtype, layout, device, requires_grad, {})

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"""Make a window: {formula}; see ``candelabra.signal.windows.{made_by}``.

    Parameters
    ----------
    window_length : int
        How many elements.
    periodic : bool
        Whether it is one period of a periodic function; else it is symmetric.
    dtype, device, requires_grad
        As in :func:`candelabra.zeros`; any floating-point dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}(3, periodic=False).round(decimals=3).abs()
    tensor([0., 1., 0.])
    """
    function(method=False)(window)


def _make(
    name: str,
    made_by: str,
    length: int,
    periodic: bool,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
    options: Any,
) -> Tensor:
    from candelabra.signal import windows

    wanted = _C.get_default_dtype() if dtype is None else dtype
    if not wanted.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {wanted}")
    if not hasattr(length, "__index__"):
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {type(length).__name__}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    wide = wanted if wanted in (_C.float32, _C.float64) else _C.float32
    made = getattr(windows, made_by)(length, sym=not periodic, dtype=wide, layout=layout, device=device, **options)
    made = made if wide is wanted else OPERATORS["_to_copy"](made, dtype=wanted)
    return made.requires_grad_() if requires_grad else made


_window("hann_window", "hann", "``(1 - cos(2 pi n / (N - 1))) / 2``")
_window("blackman_window", "blackman", "``0.42 - 0.5 cos(2 pi n / (N - 1)) + 0.08 cos(4 pi n / (N - 1))``")
_window("bartlett_window", "bartlett", "``1 - |2 n / (N - 1) - 1|``")


@function(method=False)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Hamming window, ``alpha - beta cos(2 pi n / (N - 1))``.

    Parameters
    ----------
    window_length : int
        How many elements.
    periodic : bool
        Whether it is one period of a periodic function; else it is symmetric.
    alpha, beta : float
        The coefficients.
    dtype, device, requires_grad
        As in :func:`candelabra.zeros`; any floating-point dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.hamming_window(3, periodic=False)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return _make(
        "hamming_window",
        "general_cosine",
        window_length,
        periodic,
        dtype,
        layout,
        device,
        requires_grad,
        {"a": [alpha, beta]},
    )


@function(method=False)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Kaiser window; see ``candelabra.signal.windows.kaiser``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.kaiser_window(3, periodic=False, beta=1.0)
    tensor([0.7898, 1.0000, 0.7898])
    """
    return _make(
        "kaiser_window", "kaiser", window_length, periodic, dtype, layout, device, requires_grad, {"beta": beta}
    )


# ---- short-time transforms


def _whole_window(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor:
    """Return the window, padded with zeros on both sides to n_fft elements."""
    if window is None:
        window = FUNCTIONS["ones"](
            (win_length,), dtype=like.real.dtype if like.dtype.is_complex else like.dtype, device=like.device
        )
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        parts = [window.new_zeros(left), window, window.new_zeros(n_fft - win_length - left)]
        window = OPERATORS["cat"](parts)
    return window


def _check_lengths(shown: str, length: int, n_fft: int, hop: int, win: int, window: Tensor | None) -> None:
    """Check the lengths of pieces and of the window for :func:`stft`."""
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{shown}: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{shown}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{shown}: expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(
            f"{shown}: expected a 1D window tensor of size equal to win_length={win}, but got window with size {list(window.shape)}"
        )


_NO_WINDOW = "A window was not provided. A rectangular window will be applied. "
_NO_WARNING = (
    "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


@function()
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Compute the short-time Fourier transform: the Fourier transforms of overlapping frames of a
    signal.

    Parameters
    ----------
    input : Tensor
        Of shape (n,) or (batch, n), real or complex.
    n_fft : int
        The length of a transform.
    hop_length : int, optional
        The distance between frames; a quarter of `n_fft` by default.
    win_length : int, optional
        The length of the window, which is padded with zeros to `n_fft`; `n_fft` by default.
    window : Tensor, optional
        The factor of each frame; ones by default.
    center : bool
        Whether to pad the signal on both sides, so that frame t is centred at ``t * hop_length``.
    pad_mode : str
        The padding mode, as in :func:`candelabra.nn.functional.pad`.
    normalized : bool
        Whether to divide results by the square root of `n_fft`.
    onesided : bool, optional
        Whether to return only the first ``n_fft // 2 + 1`` frequencies; by default for real signals
        and windows.
    return_complex : bool
        Whether the result is complex. Otherwise its last dimension holds real and imaginary parts.
        Required for real signals.
    align_to_window : bool, optional
        Without `center`, whether frames are aligned to the start of the window.

    Returns
    -------
    Tensor
        Of shape (batch, frequencies, frames).

    Examples
    --------
    >>> import candelabra
    >>> candelabra.stft(candelabra.arange(8.0), 4, return_complex=True).shape
    candelabra.Size([3, 9])
    """
    from candelabra import fft

    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    shown = f"stft({input.dtype}{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={win}, window={'None' if window is None else f'{window.dtype}{list(window.shape)}'}, normalized={normalized}, onesided={onesided}, return_complex={return_complex})"
    if window is not None and window.device != input.device:
        raise RuntimeError(
            f"stft input and window must be on the same device but got self on {input.device} and window on {window.device}"
        )
    if window is None:
        _C.warn(
            f"{_NO_WINDOW}It is known to cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are "
            f"recommended to reduce spectral leakage. {_NO_WARNING}"
        )
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True "
                "in a future PyTorch release."
            )
        return_complex = True
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(f"{shown}: expected a tensor of floating point or complex values")
    if not 1 <= input.ndim <= 2:
        raise RuntimeError(f"{shown}: expected a 1D or 2D tensor")
    if align_to_window is not None and center:
        raise RuntimeError(f"{shown}: stft align_to_window should only be set when center = false.")
    x = input if input.ndim == 2 else OPERATORS["unsqueeze"](input, 0)
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    _check_lengths(shown, x.shape[1], n_fft, hop, win, window)
    if not center and align_to_window and win < n_fft:
        # Frames begin where the window does.
        x = _padded(x, 0, "constant", (n_fft - win) // 2, n_fft - win - (n_fft - win) // 2)
    pieces = OPERATORS["unfold"](x, 1, n_fft, hop)
    if window is not None or win < n_fft:
        pieces = pieces * _whole_window(window, win, n_fft, input)
    norm = "ortho" if normalized else None
    if is_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        spectrum = fft.fft(pieces, norm=norm)
    elif onesided is False:
        spectrum = fft.fft(pieces, norm=norm)
    else:
        spectrum = fft.rfft(pieces, norm=norm)
    spectrum = OPERATORS["transpose"](spectrum, 1, 2)
    if input.ndim == 1:
        spectrum = OPERATORS["squeeze"](spectrum, 0)
    return spectrum if return_complex else OPERATORS["view_as_real"](OPERATORS["contiguous"](spectrum))


def _padded(x: Tensor, both: int, mode: str, left: int | None = None, right: int | None = None) -> Tensor:
    """Pad both sides of the last dimension, as candelabra.nn.functional.pad does, which is in
    another package.
    """
    left, right = both if left is None else left, both if right is None else right
    length = x.shape[-1]
    if mode == "constant":
        return OPERATORS["_constant_pad_nd"](x, (left, right), 0)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"stft(): unrecognised padding mode {mode}")
    if mode != "replicate" and max(left, right) >= length + (mode == "circular"):
        raise RuntimeError(
            f"stft(): padding size should be less than the corresponding input dimension, but got: padding ({left}, {right}) at dimension 1 "
            f"of input {list(x.shape)}"
        )
    return OPERATORS["_reflection_replication_pad"](x, (left, right), mode) if left or right else x


def _check_pieces(
    shown: str, frequencies: int, n_fft: int, hop: int, win: int, window: Tensor | None, onesided: bool
) -> None:
    """Check that transforms of pieces can be those of :func:`stft` with the same arguments."""
    if onesided:
        if n_fft // 2 + 1 != frequencies:
            raise RuntimeError(
                f"{shown}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, but got {frequencies}"
            )
    elif n_fft != frequencies:
        raise RuntimeError(
            f"{shown}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, but got {frequencies}"
        )
    if not 0 < hop <= win:
        raise RuntimeError(f"{shown}: expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{shown}: expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(f"{shown}: Invalid window shape. window has to be 1D and length of `win_length`")


@function()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Compute the inverse short-time Fourier transform: the inverse of :func:`candelabra.stft`.

    Where pieces overlap, they are added, weighted by the window, and divided by the sum of its
    squares (Griffin and Lim, 1984).

    Parameters
    ----------
    input : Tensor
        Complex, of shape (frequencies, frames) or (batch, frequencies, frames).
    n_fft, hop_length, win_length, window, center, normalized, onesided
        The arguments of :func:`candelabra.stft`.
    length : int, optional
        The length of the signal, which is truncated or padded with zeros.
    return_complex : bool
        Whether the signal is complex.

    Raises
    ------
    RuntimeError
        If windows do not overlap everywhere, or the shapes do not fit.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.arange(8.0)
    >>> window = candelabra.hann_window(4)
    >>> candelabra.istft(candelabra.stft(x, 4, window=window, return_complex=True), 4, window=window).round(decimals=3).abs()
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    from candelabra import fft

    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    shown = f"istft({input.dtype}{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={win}, window={'None' if window is None else f'{window.dtype}{list(window.shape)}'}, center={center}, normalized={normalized}, onesided={onesided}, length={length})"
    if window is not None and window.device != input.device:
        raise RuntimeError(
            f"istft input and window must be on the same device but got self on {input.device} and window on {window.device}"
        )
    if window is None:
        _C.warn(
            f"{_NO_WINDOW}Please provide the same window used by stft to make the inversion lossless. {_NO_WARNING}"
        )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.numel() == 0:
        raise RuntimeError(f"{shown}: input tensor cannot be empty.")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"{shown}: expected a tensor with 2 or 3 dimensions, but got {input.ndim}")
    if return_complex and onesided:
        raise RuntimeError("cannot have onesided output if window or input is complex")
    if onesided is None:
        onesided = input.shape[-2] != n_fft
    _check_pieces(shown, input.shape[-2], n_fft, hop, win, window, onesided)
    if length is not None and length <= 0:
        raise RuntimeError(f"{shown}: expected length > 0, but got length={length}")
    whole = _whole_window(window, win, n_fft, input)
    x = input if input.ndim == 3 else OPERATORS["unsqueeze"](input, 0)
    pieces = OPERATORS["transpose"](x, 1, 2)
    norm = "ortho" if normalized else None
    if return_complex:
        pieces = fft.ifft(pieces, norm=norm)
    else:
        if window is not None and window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        pieces = fft.irfft(pieces if onesided else OPERATORS["narrow"](pieces, -1, 0, n_fft // 2 + 1), n_fft, norm=norm)
    count = pieces.shape[1]
    signal = _overlapped(pieces * whole, hop)
    envelope = _overlapped((whole * whole).expand(1, count, n_fft), hop)
    start = n_fft // 2 if center else 0
    full = n_fft + hop * (count - 1)
    end = start + length if length is not None else full - n_fft // 2 if center else full
    size = min(end, full) - start
    signal, envelope = (OPERATORS["narrow"](part, 1, start, size) for part in (signal, envelope))
    smallest = OPERATORS["abs"](all_values(envelope.detach())).min() if size > 0 else None
    if smallest is None or not (smallest.is_meta or smallest.item() > 1e-11):
        raise RuntimeError(
            f"{shown}: window overlap add min: {smallest if smallest is None else smallest.item()}: the window is zero where pieces do not overlap"
        )
    signal = signal / envelope
    if end > full:
        signal = OPERATORS["cat"]([signal, signal.new_zeros((signal.shape[0], end - full))], 1)
    return signal if input.ndim == 3 else OPERATORS["squeeze"](signal, 0)


def _overlapped(pieces: Tensor, hop: int) -> Tensor:
    """Add overlapping frames (batch, count, n), `hop` elements apart."""
    batch, count, n = pieces.shape
    starts = OPERATORS["arange"](0, count, 1, dtype=_C.int64, device=pieces.device) * hop
    places = OPERATORS["unsqueeze"](starts, 1) + OPERATORS["arange"](0, n, 1, dtype=_C.int64, device=pieces.device)
    result = pieces.new_zeros((batch, n + hop * (count - 1)))
    return OPERATORS["index_add"](result, 1, reshape(places, -1), reshape(pieces, batch, -1))
