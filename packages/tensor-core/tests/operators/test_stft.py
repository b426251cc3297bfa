"""stft against its definition and SciPy, istft against what went into stft, and what both
refuse.
"""

import warnings

import numpy as np
import pytest
import scipy.signal

import candelabra

REAL = np.random.default_rng(0).standard_normal((2, 37))
COMPLEX = REAL + 1j * np.random.default_rng(1).standard_normal((2, 37))


def transform(x, n_fft, hop, window, onesided):
    """The definition: the transform of each piece, one after the other."""
    frequencies = n_fft // 2 + 1 if onesided else n_fft
    kernel = np.exp(-2j * np.pi * np.outer(np.arange(frequencies), np.arange(n_fft)) / n_fft) * window
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    return np.stack([x[..., start : start + n_fft] @ kernel.T for start in starts], -1)


def spread(window, n_fft):
    left = (n_fft - len(window)) // 2
    return np.pad(window, (left, n_fft - len(window) - left))


@pytest.mark.parametrize("pad_mode", ["reflect", "constant", "replicate", "circular"])
@pytest.mark.parametrize("n_fft", [8, 7, 1])
@pytest.mark.parametrize("x", [REAL, REAL[0], COMPLEX, COMPLEX[1]], ids=["real", "real 1-d", "complex", "complex 1-d"])
def test_definition(x, n_fft, pad_mode):
    names = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}
    is_complex = np.iscomplexobj(x)
    for center in (True, False):
        for hop in (1, 3, 11):
            for win_length in {n_fft, max(n_fft - 3, 1)}:
                window = np.random.default_rng(2).uniform(0.5, 1, win_length)
                for onesided in (False,) if is_complex else (True, False):
                    given = x
                    if center:
                        given = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], names[pad_mode])
                    expected = transform(given, n_fft, hop, spread(window, n_fft), onesided)
                    made = candelabra.stft(
                        candelabra.tensor(x),
                        n_fft,
                        hop,
                        win_length,
                        candelabra.tensor(window),
                        center,
                        pad_mode,
                        onesided=onesided,
                        return_complex=True,
                    )
                    assert made.dtype == candelabra.complex128
                    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-10, atol=1e-10)


def test_scipy():
    window = scipy.signal.windows.hann(16, sym=False)
    _, _, expected = scipy.signal.stft(REAL, window=window, nperseg=16, noverlap=12, boundary=None, padded=False)
    made = candelabra.stft(
        candelabra.tensor(REAL),
        16,
        4,
        window=candelabra.hann_window(16, dtype=candelabra.float64),
        center=False,
        return_complex=True,
    )
    np.testing.assert_allclose(made.numpy(), expected * window.sum(), rtol=1e-10, atol=1e-12)


def test_options():
    x = candelabra.tensor(REAL, dtype=candelabra.float32)
    plain = candelabra.stft(x, 8, return_complex=True)
    assert (plain.dtype, plain.shape) == (candelabra.complex64, (2, 5, 19))  # a quarter of n_fft between pieces
    scaled = candelabra.stft(x, 8, normalized=True, return_complex=True)
    np.testing.assert_allclose(scaled.numpy() * np.sqrt(8), plain.numpy(), rtol=1e-5, atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = candelabra.stft(x, 8, return_complex=False)
    np.testing.assert_array_equal(pairs.numpy(), np.stack([plain.numpy().real, plain.numpy().imag], -1))
    method = x.stft(8, return_complex=True)
    np.testing.assert_array_equal(method.numpy(), plain.numpy())
    window = np.exp(1j * np.arange(8))
    made = candelabra.stft(candelabra.tensor(REAL), 8, 2, window=candelabra.tensor(window), center=False)
    np.testing.assert_allclose(made.numpy(), transform(REAL, 8, 2, window, False), rtol=1e-10, atol=1e-10)


def test_pieces_that_begin_where_the_window_does():
    window = np.random.default_rng(2).uniform(0.5, 1, 5)
    x = candelabra.tensor(REAL)
    made = candelabra.stft(
        x, 8, 2, 5, candelabra.tensor(window), center=False, align_to_window=True, return_complex=True
    )
    expected = transform(np.pad(REAL, ((0, 0), (1, 2))), 8, 2, spread(window, 8), True)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("x", [REAL, REAL[0], COMPLEX], ids=["real", "real 1-d", "complex"])
def test_the_inverse_gives_the_signal_back(x, center, normalized):
    is_complex = np.iscomplexobj(x)
    for n_fft, hop, win_length in ((8, 2, 8), (7, 3, 6), (8, 4, 5)):
        window = candelabra.tensor(np.random.default_rng(3).uniform(0.5, 1, win_length))
        options = {
            "hop_length": hop,
            "win_length": win_length,
            "window": window,
            "center": center,
            "normalized": normalized,
        }
        for onesided in (False,) if is_complex else (True, False):
            spectrum = candelabra.stft(candelabra.tensor(x), n_fft, onesided=onesided, return_complex=True, **options)
            if not center and win_length < n_fft:  # nothing covers the beginning
                with pytest.raises(RuntimeError, match="window overlap add min"):
                    candelabra.istft(spectrum, n_fft, onesided=onesided, return_complex=is_complex, **options)
                continue
            back = candelabra.istft(spectrum, n_fft, onesided=onesided, return_complex=is_complex, **options).numpy()
            assert back.dtype == x.dtype
            np.testing.assert_allclose(back, x[..., : back.shape[-1]], rtol=1e-9, atol=1e-9)
            assert x.shape[-1] - back.shape[-1] < n_fft + hop


def test_length_of_the_inverse():
    spectrum = candelabra.stft(candelabra.tensor(REAL), 8, 2, return_complex=True)
    for length in (5, 37, 40):
        back = candelabra.istft(spectrum, 8, 2, length=length).numpy()
        assert back.shape == (2, length)
        known = min(length, 36)
        np.testing.assert_allclose(back[:, :known], REAL[:, :known], rtol=1e-9, atol=1e-9)
    assert candelabra.istft(spectrum, 8, 2).shape == (2, 36)
    np.testing.assert_array_equal(spectrum.istft(8, 2).numpy(), candelabra.istft(spectrum, 8, 2).numpy())


def test_the_inverse_of_anything_is_the_least_squares_signal():
    """Griffin and Lim 1984, equation 6: of all signals, the one whose transform is nearest to the
    given one.
    """
    random = np.random.default_rng(4)
    spectrum = random.standard_normal((5, 9)) + 1j * random.standard_normal((5, 9))
    window = random.uniform(0.5, 1, 8)
    made = candelabra.istft(candelabra.tensor(spectrum), 8, 2, window=candelabra.tensor(window), center=False).numpy()
    pieces = np.fft.irfft(spectrum, 8, axis=0).T * window
    total, weight = np.zeros(24), np.zeros(24)
    for t, piece in enumerate(pieces):
        total[2 * t : 2 * t + 8] += piece
        weight[2 * t : 2 * t + 8] += window**2
    np.testing.assert_allclose(made, total / weight, rtol=1e-10, atol=1e-12)


X = candelabra.ones(10)
SPECTRUM = candelabra.ones(5, 4, dtype=candelabra.complex64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: candelabra.stft(X, 4), "requires the return_complex parameter be given for real inputs"),
        (lambda: candelabra.stft(X.long(), 4, return_complex=True), "floating point or complex"),
        (lambda: candelabra.stft(X[0], 4, return_complex=True), "expected a 1D or 2D tensor"),
        (lambda: candelabra.stft(candelabra.ones(1, 1, 9), 4, return_complex=True), "expected a 1D or 2D tensor"),
        (lambda: candelabra.stft(X, 0, return_complex=True), "n_fft"),
        (lambda: candelabra.stft(X, -4, return_complex=True), "but got n_fft=-4"),
        (lambda: candelabra.stft(X, 11, center=False, return_complex=True), "expected 0 < n_fft < 10, but got n_fft=11"),
        (lambda: candelabra.stft(X, 4, hop_length=0, return_complex=True), "expected hop_length > 0"),
        (lambda: candelabra.stft(X, 4, win_length=5, return_complex=True), "expected 0 < win_length <= n_fft"),
        (lambda: candelabra.stft(X, 4, window=candelabra.ones(3), return_complex=True), "1D window tensor of size equal to win_length=4"),
        (lambda: candelabra.stft(X, 4, align_to_window=True, return_complex=True), "should only be set when center = false"),
        (lambda: candelabra.stft(X.to(candelabra.complex64), 4, onesided=True), "Cannot have onesided output"),
        (lambda: candelabra.stft(X, 2**62, return_complex=True), "padding size should be less"),
        (lambda: candelabra.stft(X, 40, return_complex=True), "padding size should be less"),
        (lambda: candelabra.istft(X, 8), "requires a complex-valued input"),
        (lambda: candelabra.istft(SPECTRUM[:, :0], 8), "input tensor cannot be empty"),
        (lambda: candelabra.istft(SPECTRUM[0], 8), "2 or 3 dimensions, but got 1"),
        (lambda: candelabra.istft(SPECTRUM, 10, onesided=True), "match n_fft / 2 \\+ 1 when onesided=True, but got 5"),
        (lambda: candelabra.istft(SPECTRUM, 8, onesided=False), "match n_fft when onesided=False, but got 5"),
        (lambda: candelabra.istft(SPECTRUM, 8, hop_length=9), "expected 0 < hop_length <= win_length"),
        (lambda: candelabra.istft(SPECTRUM, 8, win_length=9), "expected 0 < win_length <= n_fft"),
        (lambda: candelabra.istft(SPECTRUM, 8, window=candelabra.ones(7)), "Invalid window shape"),
        (lambda: candelabra.istft(SPECTRUM, 8, onesided=True, return_complex=True), "cannot have onesided output"),
        (lambda: candelabra.istft(SPECTRUM, 8, window=candelabra.zeros(8)), "window overlap add min: 0"),
        (lambda: candelabra.istft(SPECTRUM, 8, window=candelabra.ones(8, dtype=candelabra.complex64)), "Complex windows are incompatible"),
        (lambda: candelabra.istft(SPECTRUM, 8, hop_length=2**62, win_length=2**62), "expected 0 < win_length <= n_fft"),
        (lambda: candelabra.istft(SPECTRUM, 8, length=-3), "expected length > 0, but got length=-3"),
        (lambda: candelabra.istft(SPECTRUM, 8, length=2**62), "overflow"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()
