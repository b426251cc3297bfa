"""Random boxes for the tests."""

from __future__ import annotations

import numpy as np


def rois(random: np.random.Generator, count: int, images: int, height: int, width: int) -> np.ndarray:
    """Return boxes, some of which lie partly or wholly outside of the image."""
    corners = random.uniform(-0.3, 1.3, (2, count, 2)) * [width, height]
    low, high = corners.min(0), corners.max(0)
    return np.concatenate([random.integers(0, images, (count, 1)), low, high], 1)


def boxes(random: np.random.Generator, count: int) -> np.ndarray:
    """Return boxes that overlap."""
    low = random.uniform(0, 60, (count, 2))
    return np.concatenate([low, low + random.uniform(5, 40, (count, 2))], 1)
