"""candelabra.fft against NumPy and SciPy."""

import numpy
import pytest
import scipy.fft

import candelabra
from candelabra import fft

RANDOM = numpy.random.default_rng(2)
REAL = RANDOM.standard_normal((3, 6, 5))
COMPLEX = REAL + 1j * RANDOM.standard_normal(REAL.shape)
OF_REAL = {"rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn"}


def close(ours, theirs, tolerance=1e-12):
    assert ours.shape == theirs.shape
    numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 4, 5, 9])
@pytest.mark.parametrize("dim", [-1, 0, 1])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimension(name, dim, n, norm):
    x = REAL if name in OF_REAL else COMPLEX
    close(getattr(fft, name)(candelabra.tensor(x), n, dim, norm), getattr(scipy.fft, name)(x, n, dim, norm))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(("s", "dim"), [(None, None), ((4, 7), None), (None, (0, 2)), ((2, 3), (2, 0)), ((4,), (1,))])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_several_dimensions(name, s, dim, norm):
    x = REAL if name in OF_REAL else COMPLEX
    close(getattr(fft, name)(candelabra.tensor(x), s, dim, norm), getattr(scipy.fft, name)(x, s, dim, norm))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"])
def test_two_dimensions(name):
    x = REAL if name in OF_REAL else COMPLEX
    close(getattr(fft, name)(candelabra.tensor(x), (4, 4), (0, 1)), getattr(scipy.fft, name)(x, (4, 4), (0, 1)))


@pytest.mark.parametrize("layout", ["flipped", "expanded", "transposed", "strided"])
def test_layouts(layout):
    x = candelabra.tensor(COMPLEX)
    x = {
        "flipped": x.flip(1),
        "expanded": x[:1].expand(3, 6, 5),
        "transposed": x.permute(2, 0, 1),
        "strided": x[:, ::2],
    }[layout]
    close(fft.fftn(x), numpy.fft.fftn(x.numpy()))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("norm", ["ortho", "backward"])
@pytest.mark.parametrize("shape", [(40, 37, 3), (1, 33, 64), (70, 5, 16), (129, 2, 1)])
def test_layouts_of_many_lines(shape, norm, dtype):
    """Whole planes and blocks, and lines in every direction, some of which are multiplied after
    their transform.
    """
    x = numpy.random.default_rng(3).standard_normal(shape) + 1j * numpy.random.default_rng(4).standard_normal(shape)
    x = x.astype(dtype)
    tolerance = 2e-5 if dtype == "complex64" else 1e-12
    for given in (x, x.transpose(2, 0, 1), x.transpose(1, 2, 0), x[::2], numpy.repeat(x, 2, 2)[..., ::2]):
        ours = candelabra.from_numpy(given)
        wide = given.astype("complex128")
        for dims in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2), (2, 0, 1)):
            for name in ("fftn", "ifftn"):
                close(
                    getattr(fft, name)(ours, None, dims, norm),
                    getattr(scipy.fft, name)(wide, None, dims, norm),
                    tolerance,
                )
            close(fft.rfftn(ours.real, None, dims, norm), scipy.fft.rfftn(wide.real, None, dims, norm), tolerance)
            if given.shape[dims[-1]] > 1:
                close(fft.irfftn(ours, None, dims, norm), scipy.fft.irfftn(wide, None, dims, norm), tolerance)


def test_numbers_of_threads_give_the_same():
    x = candelabra.tensor(RANDOM.standard_normal((200, 300)))
    before = candelabra.get_num_threads()
    try:
        made = []
        for threads in (1, 2):
            candelabra.set_num_threads(threads)
            made.append(fft.rfft(x).numpy())
    finally:
        candelabra.set_num_threads(before)
    assert numpy.array_equal(*made)


def test_dtypes():
    assert fft.fft(candelabra.arange(4)).dtype is candelabra.complex64
    assert fft.rfft(candelabra.ones(4, dtype=candelabra.bool)).dtype is candelabra.complex64
    assert fft.irfft(candelabra.ones(4, dtype=candelabra.float64)).dtype is candelabra.float64
    single = candelabra.tensor(COMPLEX.astype("complex64"))
    close(fft.fft(single), numpy.fft.fft(COMPLEX), 1e-5)


def test_frequencies():
    for n in (1, 4, 5):
        numpy.testing.assert_allclose(fft.fftfreq(n, 0.5).numpy(), numpy.fft.fftfreq(n, 0.5), rtol=1e-6)
        numpy.testing.assert_allclose(fft.rfftfreq(n, 2.0).numpy(), numpy.fft.rfftfreq(n, 2.0), rtol=1e-6)
        x = numpy.arange(3 * n).reshape(3, n)
        for dim in (None, 0, (0, 1)):
            assert (fft.fftshift(candelabra.tensor(x), dim).numpy() == numpy.fft.fftshift(x, dim)).all()
            assert (fft.ifftshift(candelabra.tensor(x), dim).numpy() == numpy.fft.ifftshift(x, dim)).all()
    for function in (candelabra.fft.fftfreq, candelabra.fft.rfftfreq):
        for d in (0, -0.0):
            made = function(4, d=d)
            assert bool(made[0].isnan())
            assert bool(made[1:].isinf().all())
    assert candelabra.fft.fftfreq(0).shape == (0,)
    with pytest.raises(RuntimeError, match="negative"):
        candelabra.fft.fftfreq(-1)


def test_out():
    out = candelabra.empty(0, dtype=candelabra.complex128)
    assert fft.ihfft(candelabra.tensor(REAL), out=out) is out
    close(out, scipy.fft.ihfft(REAL))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_out_of_transforms_along_one_of_the_dimensions(axis):
    for name in ("ihfftn", "ihfft2"):
        expected = scipy.fft.ihfftn(REAL, axes=(axis,))
        out = candelabra.full(expected.shape, 7.0, dtype=candelabra.complex128)
        assert getattr(fft, name)(candelabra.tensor(REAL), dim=(axis,), out=out) is out
        close(out, expected)


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: fft.fft(candelabra.ones(0)), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda: fft.fft(candelabra.ones(3), 0), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda: fft.irfft(candelabra.ones(1)), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda: fft.fft(candelabra.ones(3), norm="none"), RuntimeError, 'Invalid normalization mode: "none"'),
        (
            lambda: fft.rfft(candelabra.ones(3, dtype=candelabra.complex64)),
            RuntimeError,
            "rfft expects a real input tensor",
        ),
        (
            lambda: fft.fft(candelabra.ones(3, dtype=candelabra.float16)),
            RuntimeError,
            "Unsupported dtype candelabra.float16",
        ),
        (lambda: fft.fftn(candelabra.ones(3, 3), dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda: fft.fftn(candelabra.ones(3, 3), (2,), (0, 1)), RuntimeError, "must have the same length"),
        (
            lambda: fft.fftn(candelabra.ones(3), (2, 2)),
            RuntimeError,
            "Got shape with 2 values but input tensor only has 1",
        ),
        (lambda: fft.rfftn(candelabra.ones(3), dim=()), RuntimeError, "rfftn must transform at least one axis"),
        (lambda: fft.fft(candelabra.ones(3), dim=1), IndexError, "Dimension out of range"),
        (lambda: fft.rfft(candelabra.ones(())), IndexError, "tensor has no dimensions"),
        (lambda: fft.fft([1.0]), TypeError, "argument 'input'"),
    ],
)
def test_errors(run, kind, message):
    with pytest.raises(kind, match=message):
        run()
