"""batch_norm_update_stats: the statistics of channels, and the running ones."""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c


def test_statistics_of_channels():
    x = c.arange(12.0).reshape(3, 4)
    mean, variance = c.zeros(4), c.ones(4)
    found = c.batch_norm_update_stats(x, mean, variance, 0.1)
    # As in PyTorch: the variances are biased, the running ones are not.
    assert found[0].tolist() == [4, 5, 6, 7] and found[1].tolist() == pytest.approx([32 / 3] * 4)
    assert mean.tolist() == pytest.approx([0.4, 0.5, 0.6, 0.7]) and variance.tolist() == pytest.approx([2.5] * 4)
    images = c.randn(2, 3, 4, 5)
    found = c.batch_norm_update_stats(images, None, None, 0.1)
    assert c.allclose(found[0], images.mean((0, 2, 3)))
    assert c.allclose(found[1], images.var((0, 2, 3), correction=0), atol=1e-6)
