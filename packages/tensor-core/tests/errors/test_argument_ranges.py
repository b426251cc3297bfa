"""Arguments out of range, with the exceptions and texts of PyTorch."""

from __future__ import annotations

import pytest

import candelabra


@pytest.mark.parametrize(
    ("dtype", "bounds", "message"),
    [
        ("uint8", (0, 257), "^to - 1 is out of bounds for unsigned char"),
        ("uint8", (-1, 5), "^from is out of bounds for unsigned char"),
        ("int8", (129,), "^to - 1 is out of bounds for signed char"),
        ("int8", (200, None), "^from is out of bounds for signed char"),
        ("bool", (0, 3), "^to - 1 is out of bounds for bool"),
        ("int16", (0, 40000), "^to - 1 is out of bounds for short int"),
        ("int32", (-(2**33), None), "^from is out of bounds for int"),
        ("float16", (0, 70000), "^to - 1 is out of bounds for c10::Half"),
    ],
)
def test_random_range_of_the_dtype(dtype, bounds, message):
    x = candelabra.zeros(2, dtype=getattr(candelabra, dtype))
    with pytest.raises(RuntimeError, match=message):
        x.random_(*bounds)
    assert x.tolist() == [0, 0]


def test_random_range_up_to_the_limits_of_the_dtype():
    assert candelabra.zeros(2, dtype=candelabra.uint8).random_(0, 256).dtype is candelabra.uint8
    assert candelabra.zeros(2, dtype=candelabra.int8).random_(-128, 128).dtype is candelabra.int8
    with pytest.raises(RuntimeError, match="^to - 1 is out of bounds for unsigned char"):
        candelabra.randint(0, 300, (2,), dtype=candelabra.uint8)
    with pytest.raises(RuntimeError, match="^from is out of bounds for unsigned char"):
        candelabra.randint_like(candelabra.zeros(2, dtype=candelabra.uint8), -1, 3)


@pytest.mark.parametrize(
    ("buffer", "options", "message"),
    [
        (
            bytearray(8),
            {"offset": 8},
            r"^offset \(8 bytes\) must be non-negative and no greater than buffer length \(8",
        ),
        (bytearray(8), {"count": 3}, r"^requested buffer length \(3 \* 4 bytes\) after offset \(0 bytes\)"),
        (bytearray(8), {"count": 0}, r"^both buffer length \(8\) and count \(0\) must not be 0"),
        (bytearray(0), {}, r"^both buffer length \(0\) and count \(-1\) must not be 0"),
        (bytearray(7), {}, r"^buffer length \(7 bytes\) after offset \(0 bytes\) must be a multiple"),
        ("text", {}, "^object does not implement Python buffer protocol"),
    ],
)
def test_frombuffer(buffer, options, message):
    with pytest.raises(ValueError, match=message):
        candelabra.frombuffer(buffer, dtype=candelabra.float32, **options)


def test_unravel_index():
    with pytest.raises(TypeError, match="^expected 'indices' to be integer dtype, but got"):
        candelabra.unravel_index(candelabra.tensor([0.5]), (2, 2))
    with pytest.raises(TypeError, match="^expected 'shape' sequence to only contain ints"):
        candelabra.unravel_index(candelabra.tensor(1), (2.0, 2))
    with pytest.raises(ValueError, match="^'shape' cannot have negative values"):
        candelabra.unravel_index(candelabra.tensor(1), (-2, 2))


@pytest.mark.parametrize("arguments", [("cpu", "cpu"), ("cpu", candelabra.device("cpu")), (candelabra.float32, "cpu")])
def test_to_takes_one_device(arguments):
    with pytest.raises(TypeError, match=r"^to\(\) received an invalid combination of arguments"):
        candelabra.ones(1).to(*arguments)


def test_float_power_in_place_needs_the_dtype_of_the_result():
    with pytest.raises(
        RuntimeError, match="^the base given to float_power_ has dtype Float but the operation's result"
    ):
        candelabra.ones(2).float_power_(2)
    with pytest.raises(RuntimeError, match="^the output given to float_power has dtype Float"):
        candelabra.float_power(candelabra.ones(2), 2, out=candelabra.empty(2))
    assert candelabra.full((1,), 3.0, dtype=candelabra.float64).float_power_(2).tolist() == [9.0]
