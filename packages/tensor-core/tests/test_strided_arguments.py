"""Arguments whose memory is not in order, where the property tests do not look."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c


def test_running_statistics_with_gaps():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((6, 3))
    memory = c.zeros(2, 3, 2, dtype=c.float64)
    mean, variance = memory[0, :, 1], memory[1, :, 1]
    for training in (True, False):
        before_mean, before_variance = np.array(mean.tolist()), np.array(variance.tolist())
        out = c.ops.native_batch_norm(c.tensor(x), None, None, mean, variance, training, 0.25, 1e-5)[0]
        center, spread = (x.mean(0), x.var(0)) if training else (before_mean, before_variance)
        np.testing.assert_allclose(out.tolist(), (x - center) / np.sqrt(spread + 1e-5), rtol=1e-10)
        if training:
            np.testing.assert_allclose(mean.tolist(), 0.25 * x.mean(0), rtol=1e-12)
            np.testing.assert_allclose(variance.tolist(), 0.25 * x.var(0, ddof=1), rtol=1e-12)
        assert memory[:, :, 0].abs().sum().item() == 0
    same = c.zeros(1, dtype=c.float64).expand(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        c.ops.native_batch_norm(c.tensor(x), None, None, same, mean, True, 0.25, 1e-5)
    assert c.ops.native_batch_norm(c.tensor(x), None, None, same, same + 1, False, 0.25, 0.0)[0].tolist() == x.tolist()


def test_view_copy_of_what_has_no_view():
    x = c.arange(6).view(2, 3).t()
    with pytest.raises(RuntimeError, match="view"):
        x.view(6)
    assert c.view_copy(x, (6,)).tolist() == [0, 3, 1, 4, 2, 5]
    assert c.view_copy(x, (2, -1)).tolist() == [[0, 3, 1], [4, 2, 5]]
    made = c.view_copy(x[:1], (2,))
    made[0] = 9
    assert x[0].tolist() == [0, 3]
    assert c.view_copy(c.tensor([1.0]), c.int32).tolist() == [0x3F800000]
