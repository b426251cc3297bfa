"""`candelabra.testing.make_tensor`."""

import pytest

import candelabra
from candelabra.testing import make_tensor


def test_shapes_and_dtypes() -> None:
    for dtype in (candelabra.bool, candelabra.uint8, candelabra.int64, candelabra.bfloat16, candelabra.complex64):
        for made in (make_tensor(2, 3, dtype=dtype), make_tensor((2, 3), dtype=dtype)):
            assert made.shape == (2, 3) and made.dtype is dtype
    assert make_tensor((), dtype=candelabra.int8).ndim == 0


def test_interval_excludes_its_end() -> None:
    drawn = make_tensor(1000, dtype=candelabra.int32, low=2, high=4)
    assert set(drawn.tolist()) == {2, 3}
    assert make_tensor(1000, dtype=candelabra.uint8).min() >= 0 and make_tensor(1000, dtype=candelabra.uint8).max() <= 9
    wide = make_tensor(100, dtype=candelabra.float32, low=-candelabra.inf, high=candelabra.inf)
    assert wide.isfinite().all() and wide.abs().max() > 1e30


def test_noncontiguous() -> None:
    made = make_tensor(3, 4, noncontiguous=True)
    assert made.shape == (3, 4) and not made.is_contiguous() and made.storage_offset() == 1
    assert make_tensor(1, noncontiguous=True).is_contiguous()
    images = make_tensor(2, 3, 4, 5, memory_format=candelabra.channels_last)
    assert images.is_contiguous(memory_format=candelabra.channels_last)


def test_exclude_zero() -> None:
    assert make_tensor(1000, dtype=candelabra.int16, exclude_zero=True).ne(0).all()


def test_errors() -> None:
    with pytest.raises(ValueError, match="not supported for boolean and integral"):
        make_tensor(2, dtype=candelabra.int8, requires_grad=True)
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, noncontiguous=True, memory_format=candelabra.channels_last)
    with pytest.raises(ValueError, match="must be less than"):
        make_tensor(2, low=2, high=1)
    with pytest.raises(ValueError, match="cannot be NaN"):
        make_tensor(2, low=candelabra.nan)
    with pytest.raises(ValueError, match="only supports"):
        make_tensor(2, dtype=candelabra.uint8, low=256, high=300)
    with pytest.warns(FutureWarning, match="low==high"):
        make_tensor(2, low=1, high=1)
