"""Test loss_parallel and batch normalisation of DTensors against whole tensors."""

from __future__ import annotations

import pytest
from test_tensors import COMMON

LOSSES = """
from candelabra.distributed.tensor.parallel import loss_parallel
def compare(what, shape, mesh, places, target_places, call, dtype=candelabra.float64, atol=1e-10):
    x = whole(*shape, seed=3).to(dtype)
    classes = shape[1] if len(shape) > 1 else shape[0]
    where = [shape[0], *shape[2:]] if len(shape) > 1 else []
    target = candelabra.randint(0, classes, where, generator=candelabra.Generator().manual_seed(5))
    if target.ndim: target.view(-1)[1] = -100 if "ignore" not in what else 2
    plain = x.clone().requires_grad_()
    part = distribute_tensor(x, mesh, places, src_data_rank=None).requires_grad_()
    spread = target if target_places is None else distribute_tensor(target, mesh, target_places, src_data_rank=None)
    expected = call(plain, target)
    expected.sum().backward()
    with loss_parallel():
        found = call(part, spread)
        found.sum().backward()
    assert found.shape == expected.shape and candelabra.allclose(found.full_tensor(), expected, atol=atol), (what, found, expected)
    assert part.grad.placements == tuple(places), (what, part.grad.placements)
    assert candelabra.allclose(part.grad.full_tensor(), plain.grad, atol=atol), (what, places)
flat = init_device_mesh("cpu", (size,))
w = whole(7).abs() + 0.5
for reduction in ("mean", "sum", "none"):
    for shape in ((6, 7), (6, 7, 3), (7,), (5, 2)):  # with 4 ranks, some have no class
        places = [S(0 if len(shape) == 1 else 1)]
        for target_places in (None, [R]):
            compare("plain", shape, flat, places, target_places, lambda x, t: F.cross_entropy(x, t, reduction=reduction))
    compare("ignored", (6, 7), flat, [S(1)], None, lambda x, t: F.cross_entropy(x, t, w, ignore_index=2, reduction=reduction))
    compare("weights", (6, 7, 2), flat, [S(1)], None, lambda x, t: F.cross_entropy(x, t, w, reduction=reduction))
    compare("two steps", (6, 7), flat, [S(1)], None, lambda x, t: F.nll_loss(F.log_softmax(x, 1), t, reduction=reduction))
compare("single", (6, 7), flat, [S(1)], None, F.cross_entropy, candelabra.float32, 1e-5)
if size == 4:
    mesh = init_device_mesh("cpu", (2, 2))
    for reduction in ("mean", "sum", "none"):
        for shape, places, target_places in (
            ((6, 7), [S(0), S(1)], [S(0), R]), ((5, 7), [S(1), S(0)], [R, S(0)]),
            ((6, 7), [R, S(1)], None), ((4, 7, 6), [S(2), S(1)], [S(1), R]), ((4, 7, 6), [S(0), S(1)], [R, R]),
        ):
            compare("mesh", shape, mesh, places, target_places, lambda x, t: F.cross_entropy(x, t, reduction=reduction))
    x = distribute_tensor(whole(4, 8), mesh, [S(0), S(1)], src_data_rank=None)
    with loss_parallel():
        assert "needs the target as a DTensor with the placements" in raised(ValueError, F.cross_entropy, x, candelabra.zeros(4, dtype=candelabra.int64))
x = distribute_tensor(whole(4, 8), flat, [S(0)], src_data_rank=None)
with loss_parallel():
    assert "exactly one mesh dim to shard tensor dimension 1" in raised(ValueError, F.cross_entropy, x, candelabra.zeros(4, dtype=candelabra.int64))
F.log_softmax(x, 1)  # outside the block the rules are as before
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_cross_entropy_of_sharded_classes(job, ranks):
    result = job(COMMON + LOSSES + "\nline('done', rank)\n", ranks)
    assert result.status == 0, result.errors
    assert result.lines("done") == [str(rank) for rank in range(ranks)]
