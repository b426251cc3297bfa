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


NORMS = """
flat = init_device_mesh("cpu", (size,))
def norm(x, w, b): return F.batch_norm(x, None, None, w, b, True)
def bare(x): return F.batch_norm(x, None, None, training=True)
meshes = [(flat, [[S(0)], [S(1)], [R]] if size == 2 else [[S(0)]])]
if size == 4: meshes.append((init_device_mesh("cpu", (2, 2)), [[S(0), S(1)], [S(1), S(0)], [S(0), S(0)], [S(2), S(0)]]))
for mesh, placements in meshes:
    for places in placements:
        for shape in ((5, 6, 3), (8, 6, 4, 2)):
            check("batch_norm", norm, [whole(*shape), whole(6, seed=1), whole(6, seed=2)], mesh, places, [R] * mesh.ndim, [R] * mesh.ndim)
            check("bare", bare, [whole(*shape)], mesh, places)
# The module: training updates the running statistics, evaluation uses them.
for channels in ([R], [S(0)]):
    for places in ([S(0)], [S(1)], [R]):
        plain = nn.BatchNorm1d(6).double()
        module = nn.BatchNorm1d(6).double()
        def spread_of(name, part, mesh):
            for table in (part._parameters, part._buffers):
                for key, value in table.items():
                    made = distribute_tensor(value.detach(), mesh, channels if value.ndim else [R])
                    table[key] = nn.Parameter(made) if table is part._parameters else made
        distribute_module(module, flat, spread_of)
        for step in range(3):
            x = whole(9, 6, seed=step)
            expected, found = plain(x), module(distribute_tensor(x, flat, places, src_data_rank=None))
            close(found.full_tensor(), expected, (channels, places))
        for key in ("running_mean", "running_var"):
            kept = getattr(module, key)
            assert kept.placements == tuple(channels)
            close(kept.full_tensor(), getattr(plain, key), key)
        plain.eval(); module.eval()
        expected, found = plain(x), module(distribute_tensor(x, flat, places, src_data_rank=None))
        close(found.full_tensor(), expected, "eval")
        expected.pow(2).sum().backward(); found.pow(2).sum().backward()
        close(module.weight.grad.full_tensor(), plain.weight.grad, "weight")
# Half precision is summed in float32.
x = whole(64, 6).to(candelabra.bfloat16)
found = F.batch_norm(distribute_tensor(x, flat, [S(0)], src_data_rank=None), None, None, training=True)
assert found.dtype == candelabra.bfloat16
assert candelabra.allclose(found.full_tensor().float(), F.batch_norm(x, None, None, training=True).float(), atol=0.03)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_batch_norm(job, ranks):
    result = job(COMMON + NORMS + "\nline('done', rank)\n", ranks)
    assert result.status == 0, result.errors
    assert result.lines("done") == [str(rank) for rank in range(ranks)]
