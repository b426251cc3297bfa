"""Test every conversion of the float8 dtypes and complex32 against a reference written from the
formats: exponent bits, mantissa bits, bias, and what the codes at the end mean.

That the reference gives what PyTorch 2.13 and ml_dtypes give was checked once.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra as c

#: Exponent bits, mantissa bits, bias, and what follows the largest finite number: infinity, NaN, or
#: nothing, as numbers out of range saturate.
FORMATS = {
    "float8_e4m3fn": (4, 3, 7, "saturates"),
    "float8_e5m2": (5, 2, 15, "infinity"),
    "float8_e4m3fnuz": (4, 3, 8, "nan"),
    "float8_e5m2fnuz": (5, 2, 16, "nan"),
}
ONE_ZERO = ("float8_e4m3fnuz", "float8_e5m2fnuz")
ALL = [*FORMATS, "float8_e8m0fnu"]
REAL = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


def dtype_of(name: str) -> c.dtype:
    return getattr(c, name)


def magnitudes(name: str) -> np.ndarray:
    """Return the finite numbers of the codes 0 to 127, and the number that would come next."""
    _, mantissa_bits, bias, _ = FORMATS[name]
    exponent, mantissa = np.divmod(np.arange(129), 2**mantissa_bits)
    step = 2.0**-mantissa_bits
    return np.where(
        exponent == 0, mantissa * step * 2.0 ** (1 - bias), (1 + mantissa * step) * 2.0 ** (exponent - bias)
    )


def finite_codes(name: str) -> int:
    """Return how many codes without a sign are finite."""
    return {"float8_e4m3fn": 127, "float8_e5m2": 124}.get(name, 128)


def widened(name: str) -> np.ndarray:
    """Return the numbers of all 256 codes."""
    if name == "float8_e8m0fnu":
        return np.append(2.0 ** (np.arange(255.0) - 127), np.nan)
    half = magnitudes(name)[:128].copy()
    half[finite_codes(name) :] = np.nan
    if name == "float8_e5m2":
        half[124] = np.inf
    numbers = np.concatenate([half, -half])
    if name in ONE_ZERO:
        numbers[128] = np.nan
    return numbers


def narrowed(name: str, numbers: np.ndarray) -> np.ndarray:
    """Return the codes of float32 numbers: the nearest, of two the even one."""
    with np.errstate(invalid="ignore"):
        values = numbers.astype(np.float64)
    if name == "float8_e8m0fnu":
        return narrowed_exponents(numbers)
    grid = magnitudes(name)[: finite_codes(name) + 1]  # and what would come next, from which on all overflows
    size = np.abs(np.where(np.isnan(values), 0, values))
    above = np.clip(np.searchsorted(grid, size), 1, len(grid) - 1)
    below = above - 1
    to_lower, to_upper = size - grid[below], grid[above] - size
    codes = np.where((to_lower < to_upper) | ((to_lower == to_upper) & (below % 2 == 0)), below, above)
    codes = np.where(size >= grid[-1], len(grid) - 1, codes)
    signs = np.where(np.signbit(values), 128, 0)
    overflow = codes == len(grid) - 1
    last = FORMATS[name][3]
    if last == "saturates":
        codes = np.where(overflow, len(grid) - 2, codes)
    found = np.where((codes == 0) & (name in ONE_ZERO), 0, codes + signs)
    if last == "nan":
        found = np.where(overflow, 128, found)
    return np.where(np.isnan(values), 128 if name in ONE_ZERO else 127, found).astype(np.uint8)


def narrowed_exponents(numbers: np.ndarray) -> np.ndarray:
    """Return the codes of e8m0: a float32's exponent, one more from 1.5 times the power of two on.

    Subnormal float32 numbers have the exponent 0 and no leading one: above 2^-127 they become
    2^-126.
    """
    bits = numbers.view(np.uint32)
    exponent, rest = bits >> 23 & 0xFF, bits & 0x7FFFFF
    up = (rest > 0x400000) | ((rest == 0x400000) & (exponent > 0))
    return np.where(exponent == 255, 255, exponent + up).astype(np.uint8)


def codes_of(tensor: c.Tensor) -> np.ndarray:
    return tensor.view(c.uint8).numpy()


def of_codes(name: str) -> c.Tensor:
    return c.arange(256).to(c.uint8).view(dtype_of(name))


def check(name: str, source: c.Tensor) -> None:
    """Compare a tensor's codes with those of its numbers as float32; the sign of NaN is free."""
    numbers = source.to(c.float32).numpy()
    found, expected = codes_of(source.to(dtype_of(name))), narrowed(name, numbers)
    is_nan = np.isnan(numbers)
    np.testing.assert_array_equal(found[~is_nan], expected[~is_nan])
    if is_nan.any():
        assert np.isnan(widened(name)[found[is_nan]]).all()


@pytest.mark.parametrize("name", ALL)
def test_every_code_is_read_exactly(name):
    np.testing.assert_array_equal(of_codes(name).to(c.float64).numpy(), widened(name))
    np.testing.assert_array_equal(of_codes(name).float().numpy(), widened(name).astype(np.float32))
    np.testing.assert_array_equal(np.array(of_codes(name).tolist()), widened(name))


@pytest.mark.parametrize("name", ALL)
def test_every_code_comes_back(name):
    tensor = of_codes(name)
    numbers = tensor.float()
    is_nan = numbers.isnan().numpy()
    assert np.array_equal(codes_of(numbers.to(dtype_of(name)))[~is_nan], np.arange(256)[~is_nan])
    made = c.tensor(numbers.tolist(), dtype=dtype_of(name))
    assert np.array_equal(codes_of(made)[~is_nan], np.arange(256)[~is_nan])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("of", ["float16", "bfloat16"])
def test_every_half_precision(name, of):
    bits = np.arange(65536, dtype=np.uint16).view(np.int16)
    check(name, c.from_numpy(bits).view(dtype_of(of)))


@pytest.mark.parametrize("name", ALL)
def test_float32_at_random_and_at_boundaries(name):
    bits = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    finite = np.sort(widened(name)[np.isfinite(widened(name))])
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    largest = np.float32(np.finfo(np.float32).max)
    boundaries = [ties, np.nextafter(ties, largest), np.nextafter(ties, -largest), finite.astype(np.float32)]
    edges = np.array(
        [0.0, -0.0, 464, 480, 61440, 65536, 248, 256, 1e-45, 2**-127, 1e38, np.inf, -np.inf, np.nan], np.float32
    )
    check(name, c.from_numpy(np.concatenate([bits, *boundaries, edges])))


@pytest.mark.parametrize("name", ALL)
def test_float64_is_rounded_through_float32(name):
    numbers = np.random.default_rng(1).standard_normal(5000) * 2.0 ** np.random.default_rng(2).integers(-20, 20, 5000)
    check(name, c.from_numpy(numbers))
    made = c.tensor(numbers.tolist(), dtype=dtype_of(name))
    np.testing.assert_array_equal(codes_of(made), narrowed(name, numbers.astype(np.float32)))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("other", REAL)
def test_to_and_from_every_dtype(name, other):
    numbers = c.tensor([0, 1, 2, 3, 4, 6, 7, 12, 16, 100])
    check(name, numbers.to(dtype_of(other)))
    narrow = numbers.to(dtype_of(name))
    if name == "float8_e8m0fnu" and not dtype_of(other).is_floating_point:
        narrow = narrow[1:]
    np.testing.assert_array_equal(
        narrow.to(dtype_of(other)).double().numpy(), narrow.float().to(dtype_of(other)).double().numpy()
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("other", ALL)
def test_between_the_formats(name, other):
    np.testing.assert_array_equal(
        codes_of(of_codes(other)[:120].to(dtype_of(name))), codes_of(of_codes(other)[:120].float().to(dtype_of(name)))
    )


@pytest.mark.parametrize("name", ALL)
def test_bools_and_complex_numbers(name):
    narrow = of_codes(name)
    assert np.array_equal(narrow.bool().numpy(), widened(name) != 0)
    found = narrow.to(c.complex64).numpy()
    np.testing.assert_array_equal(found.real, widened(name).astype(np.float32))
    assert not found.imag.any()
    assert c.tensor([True, False]).to(dtype_of(name)).float().tolist()[0] == 1.0


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2fnuz"])
@pytest.mark.parametrize("shape", [(), (1,), (255,), (257,), (40000,), (37, 19), (300, 300), (5, 3, 129)])
def test_strides(name, shape):
    numbers = c.from_numpy(np.asarray(np.random.default_rng(0).standard_normal(shape) * 30, np.float32))
    narrow = numbers.to(dtype_of(name))
    expected = narrowed(name, numbers.reshape(-1).numpy()).reshape(shape)
    np.testing.assert_array_equal(codes_of(narrow), expected)
    for view in (
        lambda t: t.mT if t.ndim > 1 else t,
        lambda t: t[..., ::2] if t.ndim else t,
        lambda t: t.expand(3, *t.shape),
    ):
        np.testing.assert_array_equal(view(numbers).to(dtype_of(name)).float().numpy(), view(narrow).float().numpy())
        np.testing.assert_array_equal(view(narrow).float().numpy(), view(narrow.float()).numpy())
    out = c.zeros(shape[::-1], dtype=dtype_of(name)).permute(tuple(range(len(shape) - 1, -1, -1)))
    np.testing.assert_array_equal(codes_of(out.copy_(numbers).contiguous()), expected)


@pytest.mark.parametrize("shape", [(7,), (300,), (41, 23)])
def test_complex32(shape):
    generator = np.random.default_rng(0)
    numbers = (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(np.complex64)
    expected = numbers.view(np.float32).astype(np.float16)
    wide = c.from_numpy(numbers)
    narrow = wide.to(c.complex32)
    np.testing.assert_array_equal(c.view_as_real(narrow).reshape(expected.shape).numpy(), expected)
    np.testing.assert_array_equal(narrow.to(c.complex128).numpy().view(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(wide.T.to(c.complex32).to(c.complex64).numpy(), narrow.T.to(c.complex64).numpy())
    with pytest.warns(UserWarning, match="imaginary"):
        assert np.array_equal(narrow.float().numpy(), narrow.to(c.complex64).numpy().real)
    assert c.tensor([1.5, 70000.0]).to(c.complex32).tolist() == [1.5 + 0j, complex(float("inf"), 0)]
