"""Test ZeroRedundancyOptimizer: results of the optimizer alone, states by parts, state dicts."""

from __future__ import annotations

import pytest

import candelabra
import candelabra.distributed as dist
from candelabra import nn, optim
from candelabra.distributed.optim import ZeroRedundancyOptimizer

COMMON = """
from candelabra import nn, optim
from candelabra.distributed.optim import ZeroRedundancyOptimizer as Zero
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=30))
rank, size = dist.get_rank(), dist.get_world_size()
def make():
    candelabra.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
def step(model, optimizer, number):
    candelabra.manual_seed(number)
    optimizer.zero_grad()
    model(candelabra.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
def equal(a, b):
    for x, y in zip(a.parameters(), b.parameters(), strict=True): assert candelabra.equal(x, y)
def same_state(found, expected):
    assert found["param_groups"] == expected["param_groups"], (found["param_groups"], expected["param_groups"])
    assert list(found["state"]) == sorted(expected["state"])
    for number, values in expected["state"].items():
        assert found["state"][number].keys() == values.keys()
        for name, value in values.items(): assert candelabra.equal(candelabra.as_tensor(found["state"][number][name]), candelabra.as_tensor(value)), name
"""
TRAINING = """
kinds = [(optim.SGD, {"lr": 0.1, "momentum": 0.9}), (optim.AdamW, {"lr": 0.01}), (optim.Adagrad, {"lr": 0.1})]
for kind, options in kinds:
    for as_view in (False, True):
        model, alone = make(), make()
        zero = Zero(model.parameters(), kind, parameters_as_bucket_view=as_view, **options)
        full = kind(alone.parameters(), **options)
        for number in range(4):
            step(model, zero, number); step(alone, full, number); equal(model, alone)
            zero.param_groups[0]["lr"] *= 0.5; full.param_groups[0]["lr"] *= 0.5
        kept = sum(value.numel() for values in zero.optim.state.values() for value in values.values() if candelabra.is_tensor(value) and value.dim())
        whole = sum(value.numel() for values in full.state.values() for value in values.values() if candelabra.is_tensor(value) and value.dim())
        assert kept <= whole / size + 3 * 16 * 16, (kept, whole)
        counts = [None] * size; dist.all_gather_object(counts, kept); assert sum(counts) == whole
        if as_view and size > 1: assert len(zero._buckets) == size
        raised(RuntimeError, zero.state_dict)
        zero.consolidate_state_dict(to=size - 1)
        if rank == size - 1: same_state(zero.state_dict(), full.state_dict())
        else: raised(RuntimeError, zero.state_dict)
"""
STATES = """
model, alone = make(), make()
groups = lambda m: [{"params": m[0].parameters()}, {"params": list(m[2].parameters()), "lr": 0.05}]
zero, full = Zero(groups(model), optim.Adam, lr=0.01), optim.Adam(groups(alone), lr=0.01)
before = [[id(p) for p in group["params"]] for group in zero.optim.param_groups]
for number in range(2): step(model, zero, number); step(alone, full, number)
added = {"lr": 0.002, "weight_decay": 0.1}
zero.add_param_group({"params": model[4].parameters(), **added}); full.add_param_group({"params": alone[4].parameters(), **added})
assert [[id(p) for p in group["params"]] for group in zero.optim.param_groups[:2]] == before
for number in range(2): step(model, zero, number); step(alone, full, number)
equal(model, alone)
zero.consolidate_state_dict()
state = [zero.state_dict() if rank == 0 else None]
dist.broadcast_object_list(state)
same_state(state[0], full.state_dict())
# A state of this many ranks in an optimizer alone, and the state of that one in the sharded one.
copy, other = make(), make()
for m in (copy, other): m.load_state_dict(alone.state_dict())
one = optim.Adam([*groups(copy), {"params": list(copy[4].parameters())}], lr=1.0); one.load_state_dict(state[0])
again = Zero([*groups(other), {"params": list(other[4].parameters())}], optim.Adam, lr=1.0, parameters_as_bucket_view=True)
kept = full.state_dict(); again.load_state_dict(kept); assert kept["state"].keys() == full.state_dict()["state"].keys()
assert [group["lr"] for group in again.param_groups] == [0.01, 0.05, 0.002]
for number in range(3): step(copy, one, number); step(alone, full, number); step(other, again, number)
equal(copy, alone); equal(other, alone)
assert all(any(p is mine for group in again.optim.param_groups for mine in group["params"]) for p in again.state)
# Parameters that are frozen later leave the buckets, and keep their values.
other[0].weight.requires_grad_(False); frozen = other[0].weight.clone()
other.zero_grad(); loss = other(candelabra.ones(2, 6)).sum(); loss.backward(); again.step()
assert candelabra.equal(other[0].weight, frozen) and sum(bucket.numel() for _, bucket in again._buckets) == sum(p.numel() for p in other.parameters()) - frozen.numel()
# Closures, and more ranks than parameters.
weight = nn.Parameter(candelabra.ones(3)); few = Zero([weight], optim.SGD, lr=0.5)
def closure(): few.zero_grad(); loss = (weight * weight).sum(); loss.backward(); return loss
assert few.step(closure).item() == 3.0 and weight.tolist() == [0.0, 0.0, 0.0]
"""
GROUP = """
group = dist.new_group([1, 2])
if rank:
    model, alone = make(), make()
    zero, full = Zero(model.parameters(), optim.AdamW, group, lr=0.01), optim.AdamW(alone.parameters(), lr=0.01)
    for number in range(3): step(model, zero, number); step(alone, full, number)
    equal(model, alone)
    zero.consolidate_state_dict(to=1)
    if rank == 2: same_state(zero.state_dict(), full.state_dict())
else:
    assert "does not belong to the process group" in raised(ValueError, Zero, make().parameters(), optim.AdamW, group)
"""


@pytest.mark.parametrize(
    ("body", "ranks"), [(TRAINING, 2), (STATES, 2), (STATES, 3), (GROUP, 3)],
    ids=["training", "states-2", "states-3", "group"],
)  # fmt: skip
def test_ranks(job, body, ranks):
    result = job(COMMON + body + "\nline('done', rank)\n", ranks)
    assert result.status == 0, result.errors
    assert result.lines("done") == [str(rank) for rank in range(ranks)]


@pytest.fixture
def world():
    dist.init_process_group("fake", rank=0, world_size=4)
    yield
    dist.destroy_process_group()


def double():
    return nn.Parameter(candelabra.ones(2, dtype=candelabra.float64))


@pytest.mark.parametrize(
    ("params", "options", "kind", "message"),
    [
        (lambda: nn.Parameter(candelabra.ones(2)), {}, TypeError, "should be an iterable of Tensors, but got"),
        (lambda: 3, {}, TypeError, "should be an iterable of Tensors or dicts, but got int"),
        (list, {}, ValueError, "ZeroRedundancyOptimizer got an empty parameter list"),
        (lambda: [1.0], {}, TypeError, "should be an iterable of Tensors or dicts"),
        (lambda: [{"lr": 1.0}], {}, ValueError, "must have a 'params' key"),
        (lambda: [nn.Parameter(candelabra.ones(2)), double()], {}, ValueError, "float32 and candelabra.float64"),
    ],
)
def test_errors(world, params, options, kind, message):
    with pytest.raises(kind, match=message):
        ZeroRedundancyOptimizer(params(), optim.SGD, lr=0.1, **options)


def test_the_partition_is_even(world):
    sizes = [100, 70, 60, 50, 40, 30, 20, 10]
    parameters = [nn.Parameter(candelabra.zeros(size)) for size in sizes]
    zero = ZeroRedundancyOptimizer(parameters, optim.SGD, lr=0.1)
    found = [[parameter.numel() for parameter in each] for each in zero._parameters_of]
    assert found == [[100], [70, 20, 10], [60, 30], [50, 40]]
    with pytest.raises(ValueError, match="must be a rank from 0 to 3"):
        zero.consolidate_state_dict(to=4)
