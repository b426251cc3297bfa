"""The memory format of what interpolation returns."""

import pytest

import candelabra
from candelabra.nn import functional as F


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("crop", ["whole", "sliced", "strided"])
def test_crops_of_channels_last_images_stay_channels_last(mode: str, crop: str) -> None:
    images = candelabra.rand(2, 3, 12, 12).contiguous(memory_format=candelabra.channels_last)
    part = {"whole": images, "sliced": images[:, :, 2:-2, 2:-2], "strided": images[:, :, ::2, ::2]}[crop]
    result = F.interpolate(part, size=(5, 7), mode=mode)
    assert result.is_contiguous(memory_format=candelabra.channels_last)
    candelabra.testing.assert_close(result, F.interpolate(part.contiguous(), size=(5, 7), mode=mode))
    rows = candelabra.rand(2, 3, 12, 12)[:, :, 2:-2, 2:-2]
    assert F.interpolate(rows, size=(5, 7), mode=mode).is_contiguous()
