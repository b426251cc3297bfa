"""Every window of candelabra.signal.windows, and those by their older names, against
scipy.signal.windows.
"""

import numpy as np
import pytest
from scipy.signal import windows as theirs

import candelabra
from candelabra.signal import windows

#: name: (options of ours, SciPy's window with M and sym)
WINDOWS = {
    "bartlett": ({}, theirs.bartlett),
    "blackman": ({}, theirs.blackman),
    "cosine": ({}, theirs.cosine),
    "exponential": ({"tau": 2.5}, lambda M, sym: theirs.exponential(M, None, 2.5, sym)),
    "gaussian": ({"std": 1.7}, lambda M, sym: theirs.gaussian(M, 1.7, sym)),
    "general_cosine": ({"a": [0.4, 0.3, 0.2, 0.1]}, lambda M, sym: theirs.general_cosine(M, [0.4, 0.3, 0.2, 0.1], sym)),
    "general_hamming": ({"alpha": 0.6}, lambda M, sym: theirs.general_hamming(M, 0.6, sym)),
    "hamming": ({}, theirs.hamming),
    "hann": ({}, theirs.hann),
    "kaiser": ({"beta": 8.0}, lambda M, sym: theirs.kaiser(M, 8.0, sym)),
    "nuttall": ({}, theirs.nuttall),
}
#: older name: (arguments after the length, options, SciPy's)
OLDER = {
    "bartlett_window": ({}, theirs.bartlett),
    "blackman_window": ({}, theirs.blackman),
    "hann_window": ({}, theirs.hann),
    "hamming_window": ({"alpha": 0.5, "beta": 0.4}, None),
    "kaiser_window": ({"beta": 5.0}, lambda M, sym: theirs.kaiser(M, 5.0, sym)),
}
LENGTHS = [0, 1, 2, 3, 4, 7, 16, 101]


def test_all_of_them_are_here():
    assert set(windows.__all__) == set(WINDOWS)


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_window(name, sym):
    options, reference = WINDOWS[name]
    for M in LENGTHS:
        made = getattr(windows, name)(M, sym=sym, dtype=candelabra.float64, **options)
        assert made.dtype == candelabra.float64
        np.testing.assert_allclose(made.numpy(), reference(M, sym=sym), rtol=1e-12, atol=2e-14)
        single = getattr(windows, name)(M, sym=sym, **options)
        assert single.dtype == candelabra.float32
        np.testing.assert_allclose(single.numpy(), reference(M, sym=sym), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", OLDER)
def test_older_names(name, periodic):
    options, reference = OLDER[name]
    for M in LENGTHS:
        if reference is None:
            last = max(M if periodic else M - 1, 1)
            expected = 0.5 - 0.4 * np.cos(2 * np.pi * np.arange(M) / last) if M != 1 else np.ones(1)
        else:
            expected = reference(M, sym=not periodic)
        made = getattr(candelabra, name)(M, periodic, dtype=candelabra.float64, **options)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-12, atol=2e-14)
        for dtype, tolerance in ((candelabra.float32, 2e-5), (candelabra.float16, 2e-3), (candelabra.bfloat16, 1e-2)):
            short = getattr(candelabra, name)(M, periodic=periodic, dtype=dtype, **options)
            assert short.dtype == dtype
            np.testing.assert_allclose(np.array(short.tolist()), expected, rtol=tolerance, atol=tolerance)


def test_a_center_of_a_periodic_exponential():
    made = windows.exponential(6, center=1.0, tau=2.0, sym=False, dtype=candelabra.float64)
    np.testing.assert_allclose(made.numpy(), theirs.exponential(6, 1.0, 2.0, False), rtol=1e-13)


def test_defaults_and_the_tape():
    np.testing.assert_allclose(windows.exponential(5).numpy(), theirs.exponential(5, tau=1.0), rtol=1e-6)
    np.testing.assert_allclose(windows.gaussian(5).numpy(), theirs.gaussian(5, 1.0), rtol=1e-6)
    np.testing.assert_allclose(windows.kaiser(5).numpy(), theirs.kaiser(5, 12.0), rtol=1e-5)
    np.testing.assert_allclose(candelabra.hamming_window(5).numpy(), theirs.hamming(5, sym=False), rtol=1e-5)
    for M in (0, 1, 5):
        assert windows.hann(M, requires_grad=True).requires_grad
        assert candelabra.hann_window(M, requires_grad=True).requires_grad
    assert windows.hann(4, device="cpu", layout=candelabra.strided).device == candelabra.device("cpu")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: windows.hann(-1), ValueError, "requires non-negative window length, got M=-1"),
        (
            lambda: windows.hann(3, dtype=candelabra.int64),
            ValueError,
            "expects float32 or float64 dtypes, got: candelabra.int64",
        ),
        (lambda: windows.kaiser(3, dtype=candelabra.float16), ValueError, "expects float32 or float64"),
        (lambda: windows.kaiser(3, beta=-1), ValueError, "beta must be non-negative, got: -1"),
        (lambda: windows.gaussian(3, std=0), ValueError, "Standard deviation must be positive, got: 0"),
        (lambda: windows.exponential(3, tau=-0.5), ValueError, "Tau must be positive, got: -0.5"),
        (lambda: windows.exponential(3, center=1), ValueError, "Center must be None for symmetric windows"),
        (lambda: windows.general_cosine(3, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda: windows.general_cosine(3, a=5), TypeError, "Coefficients must be a list/tuple"),
        (lambda: candelabra.hann_window(-1), RuntimeError, "non-negative window_length, got window_length=-1"),
        (
            lambda: candelabra.bartlett_window(3, dtype=candelabra.int32),
            RuntimeError,
            "floating point dtypes, got: candelabra.int32",
        ),
        (lambda: candelabra.hann_window(3, dtype=candelabra.complex64), RuntimeError, "floating point dtypes"),
        (lambda: candelabra.hann_window("3"), TypeError, "must be int, not str"),
        (lambda: windows.hann(2.5), TypeError, "must be int, not float"),
        (lambda: candelabra.hann_window(2**62), RuntimeError, "overflow"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
