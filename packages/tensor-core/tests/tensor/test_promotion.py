"""Type promotion: every pair of dtypes, with and without dimensions, and numbers, against PyTorch's
results.

The tables were printed by ``torch.result_type`` and ``torch.can_cast`` of PyTorch 2.13.
"""

from __future__ import annotations

import itertools

import pytest

import candelabra

CODES = {
    "b1": candelabra.bool,
    "u1": candelabra.uint8,
    "i1": candelabra.int8,
    "i2": candelabra.int16,
    "i4": candelabra.int32,
    "i8": candelabra.int64,
    "f2": candelabra.float16,
    "bf": candelabra.bfloat16,
    "f4": candelabra.float32,
    "f8": candelabra.float64,
    "c4": candelabra.complex32,
    "c8": candelabra.complex64,
    "c16": candelabra.complex128,
}
DTYPES = list(CODES.values())
NAMES = [str(dtype) for dtype in DTYPES]

# Both operands with dimensions (or both without): one row for the first, one column for the second.
DIMENSIONED = """
     b1  u1  i1  i2  i4  i8  f2  bf  f4  f8  c4  c8 c16
     u1  u1  i2  i2  i4  i8  f2  bf  f4  f8  c4  c8 c16
     i1  i2  i1  i2  i4  i8  f2  bf  f4  f8  c4  c8 c16
     i2  i2  i2  i2  i4  i8  f2  bf  f4  f8  c4  c8 c16
     i4  i4  i4  i4  i4  i8  f2  bf  f4  f8  c4  c8 c16
     i8  i8  i8  i8  i8  i8  f2  bf  f4  f8  c4  c8 c16
     f2  f2  f2  f2  f2  f2  f2  f4  f4  f8  c4  c8 c16
     bf  bf  bf  bf  bf  bf  f4  bf  f4  f8  c8  c8 c16
     f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c8 c16
     f8  f8  f8  f8  f8  f8  f8  f8  f8  f8 c16 c16 c16
     c4  c4  c4  c4  c4  c4  c4  c8  c8 c16  c4  c8 c16
     c8  c8  c8  c8  c8  c8  c8  c8  c8 c16  c8  c8 c16
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""
# The first operand with dimensions, the second without.
ZERO_DIMENSIONAL = """
     b1  u1  i1  i2  i4  i8  f2  bf  f4  f8  c4  c8 c16
     u1  u1  u1  u1  u1  u1  f2  bf  f4  f8  c4  c8 c16
     i1  i1  i1  i1  i1  i1  f2  bf  f4  f8  c4  c8 c16
     i2  i2  i2  i2  i2  i2  f2  bf  f4  f8  c4  c8 c16
     i4  i4  i4  i4  i4  i4  f2  bf  f4  f8  c4  c8 c16
     i8  i8  i8  i8  i8  i8  f2  bf  f4  f8  c4  c8 c16
     f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  c4  c4  c4
     bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  c8  c8  c8
     f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  c8  c8  c8
     f8  f8  f8  f8  f8  f8  f8  f8  f8  f8 c16 c16 c16
     c4  c4  c4  c4  c4  c4  c4  c4  c4  c4  c4  c4  c4
     c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""
# A tensor and the numbers True, 1, 1.5, 1j: the tensor with and without dimensions alike.
NUMBERS = """
     b1  i8  f4  c8
     u1  u1  f4  c8
     i1  i1  f4  c8
     i2  i2  f4  c8
     i4  i4  f4  c8
     i8  i8  f4  c8
     f2  f2  f2  c4
     bf  bf  bf  c8
     f4  f4  f4  c8
     f8  f8  f8 c16
     c4  c4  c4  c4
     c8  c8  c8  c8
    c16 c16 c16 c16
"""
CAN_CAST = """
    1 1 1 1 1 1 1 1 1 1 1 1 1
    0 1 1 1 1 1 1 1 1 1 1 1 1
    0 1 1 1 1 1 1 1 1 1 1 1 1
    0 1 1 1 1 1 1 1 1 1 1 1 1
    0 1 1 1 1 1 1 1 1 1 1 1 1
    0 1 1 1 1 1 1 1 1 1 1 1 1
    0 0 0 0 0 0 1 1 1 1 1 1 1
    0 0 0 0 0 0 1 1 1 1 1 1 1
    0 0 0 0 0 0 1 1 1 1 1 1 1
    0 0 0 0 0 0 1 1 1 1 1 1 1
    0 0 0 0 0 0 0 0 0 0 1 1 1
    0 0 0 0 0 0 0 0 0 0 1 1 1
    0 0 0 0 0 0 0 0 0 0 1 1 1
"""


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


@pytest.fixture(scope="module")
def backend() -> str:
    """A device to make tensors on; only their dtypes and shapes matter here."""
    try:
        candelabra.empty(1, device="cpu")
    except candelabra.BackendError as error:
        pytest.skip(f"no cpu backend is installed: {error}")
    return "cpu"


def make(dtype: candelabra.dtype, dimensioned: bool) -> candelabra.Tensor:
    return candelabra.empty((2,) if dimensioned else (), dtype=dtype, device="cpu")


@pytest.mark.parametrize("first", range(13), ids=NAMES)
def test_promote_types(first: int) -> None:
    got = [candelabra.promote_types(DTYPES[first], second) for second in DTYPES]
    assert got == [CODES[code] for code in rows(DIMENSIONED)[first]]


@pytest.mark.parametrize("first", range(13), ids=NAMES)
def test_can_cast(first: int) -> None:
    got = [candelabra.can_cast(DTYPES[first], second) for second in DTYPES]
    assert got == [code == "1" for code in rows(CAN_CAST)[first]]


@pytest.mark.parametrize("first", range(13), ids=NAMES)
@pytest.mark.parametrize(
    ("dimensions", "table"),
    [((True, True), DIMENSIONED), ((False, False), DIMENSIONED), ((True, False), ZERO_DIMENSIONAL)],
)
def test_result_type_of_tensors(backend: str, first: int, dimensions: tuple[bool, bool], table: str) -> None:
    a = make(DTYPES[first], dimensions[0])
    for second, code in zip(DTYPES, rows(table)[first], strict=True):
        b = make(second, dimensions[1])
        assert candelabra.result_type(a, b) == CODES[code]
        assert candelabra.result_type(b, a) == CODES[code]


@pytest.mark.parametrize("first", range(13), ids=NAMES)
@pytest.mark.parametrize("dimensioned", [True, False])
def test_result_type_with_numbers(backend: str, first: int, dimensioned: bool) -> None:
    tensor = make(DTYPES[first], dimensioned)
    for number, code in zip((True, 1, 1.5, 1j), rows(NUMBERS)[first], strict=True):
        assert candelabra.result_type(tensor, number) == CODES[code]
        assert candelabra.result_type(number, tensor) == CODES[code]


def test_numbers_alone() -> None:
    assert candelabra.result_type(True, False) == candelabra.bool
    assert candelabra.result_type(1, True) == candelabra.int64
    assert candelabra.result_type(1, 1.5) == candelabra.float32
    assert candelabra.result_type(1.5, 1j) == candelabra.complex64


def test_default_dtype_decides_about_numbers(backend: str) -> None:
    before = candelabra.get_default_dtype()
    try:
        candelabra.set_default_dtype(candelabra.float64)
        assert candelabra.result_type(make(candelabra.int64, True), 1.5) == candelabra.float64
        assert candelabra.result_type(make(candelabra.float32, True), 1.5) == candelabra.float32
        assert candelabra.result_type(1, 1j) == candelabra.complex128
    finally:
        candelabra.set_default_dtype(before)


def test_promotion_is_commutative_and_idempotent() -> None:
    for a, b in itertools.product(DTYPES, DTYPES):
        joined = candelabra.promote_types(a, b)
        assert joined == candelabra.promote_types(b, a)
        assert candelabra.promote_types(joined, a) == joined


@pytest.mark.parametrize("first", range(13), ids=NAMES)
def test_mul_computes_in_the_promoted_dtype(backend: str, first: int) -> None:
    for table, dimensioned in ((DIMENSIONED, True), (ZERO_DIMENSIONAL, False)):
        a = candelabra.ones(2, dtype=DTYPES[first])
        for second, code in zip(DTYPES, rows(table)[first], strict=True):
            b = candelabra.ones((2,) if dimensioned else (), dtype=second)
            assert (a * b).dtype == CODES[code]
            assert (b * a).dtype == CODES[code]
            assert (a * b).tolist() == [1, 1]


def test_pow_by_keyword():
    assert (
        candelabra.pow(candelabra.tensor([2.0, 3.0]), exponent=2).tolist()
        == candelabra.tensor([2.0, 3.0]).pow(exponent=2).tolist()
        == [4, 9]
    )
    assert candelabra.pow(input=2, exponent=candelabra.tensor([1.0, 3.0])).tolist() == [2, 8]
