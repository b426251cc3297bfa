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


OUTPUTS = {
    "masked_select": (lambda x, out: c.masked_select(x, x > 2, out=out), (9,)),
    "linear": (lambda x, out: c.ops.linear(x, x, out=out), (3, 3)),
    "mm": (lambda x, out: c.mm(x.t(), x, out=out), (4, 4)),
    "cat": (lambda x, out: c.cat([x, x], out=out), (6, 4)),
    "sum": (lambda x, out: c.sum(x, 0, out=out), (4,)),
    "cumsum": (lambda x, out: c.cumsum(x, 1, out=out), (3, 4)),
    "index_select": (lambda x, out: c.index_select(x, 1, c.tensor([3, 0]), out=out), (3, 2)),
    "softmax": (lambda x, out: c.ops.softmax(x, 0, out=out), (3, 4)),
    "add": (lambda x, out: c.add(x, 1, out=out), (3, 4)),
}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("layout", ["gaps", "transposed", "offset"])
def test_out_with_gaps(name, layout):
    call, shape = OUTPUTS[name]
    x = c.arange(12.0).view(3, 4)
    expected = call(x, c.empty(0)).tolist()
    if layout == "gaps":
        memory = c.full((*shape[:-1], 2 * shape[-1] + 1), -7.0)
        out = memory[..., 1::2]
    elif layout == "transposed":
        memory = c.full(shape[::-1], -7.0)
        out = memory.permute(*range(len(shape) - 1, -1, -1))
    else:
        memory = c.full((shape[0] + 2, *shape[1:]), -7.0)
        out = memory[1:-1]
    assert call(x, out) is out
    assert out.tolist() == expected
    outside = memory.numel() - out.numel()
    assert int((memory == -7).sum()) == outside


@pytest.mark.parametrize("of_two", ["sort", "topk", "max"])
def test_two_outs_with_gaps(of_two):
    x = c.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]])
    call = {
        "sort": lambda out: c.sort(x, 1, out=out),
        "topk": lambda out: c.topk(x, 3, 1, out=out),
        "max": lambda out: c.max(x, 0, out=out),
    }[of_two]
    expected = [part.tolist() for part in call((c.empty(0), c.empty(0, dtype=c.int64)))]
    shape = np.shape(expected[0])
    values = c.full((*shape[:-1], 2 * shape[-1]), -7.0)
    indices = c.full((*shape[:-1], 2 * shape[-1]), -7)
    call((values[..., ::2], indices[..., 1::2]))
    assert [values[..., ::2].tolist(), indices[..., 1::2].tolist()] == expected
    assert bool((values[..., 1::2] == -7).all() & (indices[..., ::2] == -7).all())
