"""Test complex transforms of strided slices against NumPy in complex128."""

from __future__ import annotations

import numpy as np
import pytest
from values import tensor

import candelabra


def _values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    generator = np.random.default_rng([*shape])
    return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(31, 20), (32, 5), (100, 33), (512, 17), (3, 64, 40), (2, 47, 3, 6)])
def test_columns(shape: tuple[int, ...], dtype: str) -> None:
    """Short columns are transformed in the result, others from transposed tiles."""
    array = _values(shape, dtype)
    x = tensor(array)
    tolerance = 2e-6 if dtype == "complex64" else 1e-14
    for dim in range(len(shape) - 1):
        for name in ("fft", "ifft"):
            made = getattr(candelabra.fft, name)(x, dim=dim).numpy()
            exact = getattr(np.fft, name)(array.astype(np.complex128), axis=dim)
            np.testing.assert_allclose(
                made, exact, rtol=0, atol=tolerance * np.abs(exact).max(), err_msg=f"{name} {dim}"
            )
    exact = np.fft.fftn(array.astype(np.complex128))
    np.testing.assert_allclose(candelabra.fft.fftn(x).numpy(), exact, rtol=0, atol=tolerance * np.abs(exact).max())
    np.testing.assert_array_equal(x.numpy(), array)
