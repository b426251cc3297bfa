"""Test gradients of Fourier transforms against finite differences."""

import numpy
import pytest

import candelabra
from candelabra import fft
from candelabra.autograd import gradcheck, gradgradcheck

RANDOM = numpy.random.default_rng(0)


def real(*shape):
    return candelabra.tensor(RANDOM.standard_normal(shape), requires_grad=True)


def complex_(*shape):
    return candelabra.tensor(RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape), requires_grad=True)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 3, 6])
@pytest.mark.parametrize("name", ["fft", "ifft", "hfft", "irfft"])
def test_of_complex_numbers(name, n, norm):
    assert gradcheck(lambda x: getattr(fft, name)(x, n, 0, norm), (complex_(5, 2),))


@pytest.mark.parametrize("n", [None, 3, 4, 6])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft"])
def test_of_real_numbers(name, n):
    assert gradcheck(lambda x: getattr(fft, name)(x, n), (real(2, 5),))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn", "fft2", "rfft2", "irfft2"])
def test_several_dimensions(name):
    x = real(2, 3, 4) if name in ("rfftn", "ihfftn", "rfft2") else complex_(2, 3, 4)
    assert gradcheck(lambda x: getattr(fft, name)(x, dim=(0, 2)), (x,))
    assert gradgradcheck(lambda x: getattr(fft, name)(x, (3, 3), (2, 1)), (x,))
