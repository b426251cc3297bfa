"""Test communication hooks that quantize or step, averagers, and arguments of
DistributedDataParallel that concern single parameters and dtypes.
"""

from __future__ import annotations

import pytest
from test_data_parallel import COMMON

import candelabra
import candelabra.distributed as dist
from candelabra import nn, optim
from candelabra.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from candelabra.distributed.data_parallel import DistributedDataParallel
from candelabra.distributed.functional_optimizers import register_functional_optim
from candelabra.distributed.optim import DistributedOptimizer, ZeroRedundancyOptimizer, as_functional_optim

START = (
    COMMON
    + """
from candelabra.distributed.optim import ZeroRedundancyOptimizer, _apply_optimizer_in_backward, _get_in_backward_optimizers, as_functional_optim
from candelabra.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step, hook_with_zero_step_interleaved
from candelabra.distributed.algorithms.ddp_comm_hooks import quantization_hooks as quantization
def equal_on_ranks(model):
    everyone = [None] * size; dist.all_gather_object(everyone, [each.tolist() for each in model.parameters()]); assert everyone[0] == everyone[1]
def same_values(model, alone, **tolerance):
    for (name, a), (_, b) in zip(model.named_parameters(), alone.named_parameters()): assert candelabra.allclose(a, b, **tolerance), (name, a, b)
def train_apart(model, ddp, alone, other, optimizer=None, steps=4):
    for step in range(steps):
        model.zero_grad()
        other.zero_grad()
        loss(ddp(part(data(step)))).backward(); loss(alone(data(step))).backward()
        if optimizer is not None: optimizer.step()
        other.step()
    equal_on_ranks(model)
"""
)
QUANTIZED = """
for hook in (quantization.quantization_pertensor_hook, quantization.quantization_perchannel_hook):
    model, ddp, alone = pair(layers)
    ddp.register_comm_hook(None, hook)
    loss(ddp(part(data(0)))).backward(); loss(alone(data(0))).backward()
    for a, b in zip(model.parameters(), alone.parameters()): assert candelabra.allclose(a.grad, b.grad, atol=2e-3), (a.grad - b.grad).abs().max()
    assert any(not candelabra.equal(a.grad, b.grad) for a, b in zip(model.parameters(), alone.parameters()))
    grads = [None] * size; dist.all_gather_object(grads, model[0].weight.grad.tolist()); assert grads[0] == grads[1]
"""
ZERO = """
for make_hook in (hook_with_zero_step, hook_with_zero_step_interleaved):
    for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        model, ddp, alone = pair(layers, **options)
        zero = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, overlap_with_ddp=True, lr=0.01)
        ddp.register_comm_hook(None, make_hook(hooks.allreduce_hook, ddp, zero))
        for step in range(4):
            model.zero_grad(); zero.param_groups[0]["lr"] = 0.01 * (step + 1)
            loss(ddp(part(data(step)))).backward()
            if step == 0: other = optim.Adam(alone.parameters(), lr=0.01)
            other.param_groups[0]["lr"] = 0.01 * (step + 1)
            other.zero_grad(); loss(alone(data(step))).backward(); same(model, alone); other.step()
        equal_on_ranks(model); same_values(model, alone, atol=1e-5)
        zero.consolidate_state_dict()
        if rank == 0: assert len(zero.state_dict()["state"]) == 6
"""
OVERLAP = """
# Optimizers that step when the gradients are averaged
model, ddp, alone = pair(layers)
ddp._register_fused_optim(optim.AdamW, lr=0.01, weight_decay=0.1)
train_apart(model, ddp, alone, optim.AdamW(alone.parameters(), lr=0.01, weight_decay=0.1)); same_values(model, alone, atol=1e-5)
model, ddp, alone = pair(layers)
ddp._register_fused_optim(optim.SGD, 0.1, optim_params=[model[0].weight])
train_apart(model, ddp, alone, optim.SGD([alone[0].weight], 0.1)); same_values(model, alone, atol=1e-5)
for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
    candelabra.manual_seed(rank); model = layers()
    _apply_optimizer_in_backward(optim.SGD, model.parameters(), {"lr": 0.1, "momentum": 0.9})
    ddp = DDP(model, bucket_cap_mb=0.0005, **options); alone = layers(); alone.load_state_dict(model.state_dict())
    train_apart(model, ddp, alone, optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)); same_values(model, alone, atol=1e-5)
    assert all(each.grad is None for each in model.parameters()) and len(_get_in_backward_optimizers(model)) == 6
"""
DTYPES = """
from candelabra.distributed.data_parallel import _MixedPrecision
seen = []
class Sees(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(6, 4), nn.BatchNorm1d(4)
    def forward(self, x):
        seen.append((x.dtype, self.layer.weight.dtype, self.norm.running_mean.dtype)); return self.norm(self.layer(x))
low = candelabra.bfloat16
for dtypes in (_MixedPrecision(low), _MixedPrecision(low, candelabra.float32), _MixedPrecision(low, candelabra.float16, candelabra.float64)):
    model, ddp, alone = pair(layers, mixed_precision=dtypes)
    same_start = [each.detach().clone() for each in model.parameters()]
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train_apart(model, ddp, alone, optim.SGD(alone.parameters(), lr=0.1), optimizer)
    same_values(model, alone, atol=2e-2)
    assert all(each.dtype is candelabra.float32 and each.grad.dtype is candelabra.float32 for each in model.parameters())
    assert ddp(part(data(0))).dtype is low
    assert "can only be called once" in raised(RuntimeError, ddp.register_comm_hook, None, hooks.allreduce_hook)
model = Sees(); DDP(model, mixed_precision=_MixedPrecision(low, buffer_dtype=low))(part(data(0)))
assert seen == [(low, low, low)] and model.layer.weight.dtype is candelabra.float32 and model.norm.num_batches_tracked.dtype is candelabra.int64
# Only the reduction has another dtype.
model, ddp, alone = pair(layers, mixed_precision=_MixedPrecision(reduce_dtype=candelabra.float16), gradient_as_bucket_view=True)
out = ddp(part(data(0))); assert out.dtype is candelabra.float32
loss(out).backward(); loss(alone(data(0))).backward()
for a, b in zip(model.parameters(), alone.parameters()): assert candelabra.allclose(a.grad, b.grad, atol=1e-3) and not candelabra.equal(a.grad, b.grad)
"""
DELAYED = """
# Gradients of some parameters are reduced when that of the first layer is there, which comes last.
for which in (["2.weight", "2.bias"], ["0.bias", "2.weight", "2.bias", "4.weight", "4.bias", "0.weight"]):
    candelabra.manual_seed(rank); model = layers()
    named = [(name, each) for name, each in model.named_parameters() if name in which]
    ddp = DDP(model, delay_all_reduce_named_params=named, param_to_hook_all_reduce=model[0].weight)
    alone = layers(); alone.load_state_dict(model.state_dict()); equal_on_ranks(model)
    optimizers = [optim.SGD(each.parameters(), lr=0.1) for each in (model, alone)]
    for step in range(3):
        for optimizer in optimizers: optimizer.zero_grad()
        if step == 1:
            with ddp.no_sync(): loss(ddp(part(data(9)))).backward()
            loss(alone(data(9))).backward()
        loss(ddp(part(data(step)))).backward(); loss(alone(data(step))).backward(); same(model, alone)
        for optimizer in optimizers: optimizer.step()
    equal_on_ranks(model)
"""
BUFFERS = """
import warnings
def norm():
    made = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)); made[1].running_mean.fill_(rank); return made
def means(model):
    everyone = [None] * size; dist.all_gather_object(everyone, model[1].running_mean.tolist()); return everyone
model = norm(); ddp = DDP(model, forward_sync_buffers=False); assert means(model) == [[0.0] * 3] * size and not ddp.will_sync_module_buffers()
for step in range(2): ddp(part(data(step)) + rank)
assert means(model)[0] != means(model)[1] and ddp.broadcast_buffers is False
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    model = norm(); DDP(model, broadcast_buffers=False); assert means(model) == [[0.0] * 3, [1.0] * 3]
    model = norm(); ddp = DDP(model, broadcast_buffers=False, forward_sync_buffers=True, check_reduction=True)
assert means(model) == [[0.0] * 3] * size and ddp.will_sync_module_buffers()
assert [each.category for each in found] == [FutureWarning] * 3 and "Use `forward_sync_buffers`" in str(found[0].message)
# Averages in groups
from candelabra.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
averager = HierarchicalModelAverager({1: 1, 2: 2}, warmup_steps=1)
values = []
weight = candelabra.zeros(1, requires_grad=True); weight.grad = candelabra.zeros(1)
for step in range(5):
    with candelabra.no_grad(): weight.add_(rank)
    averager.average_parameters([weight]); values.append(weight.item())
assert averager.step == 5 and values == ([0.0, 0.0, 1.5, 1.5, 2.5] if rank == 0 else [1.0, 2.0, 1.5, 2.5, 2.5]), values
"""


@pytest.mark.parametrize(
    "body",
    [QUANTIZED, ZERO, OVERLAP, DTYPES, DELAYED, BUFFERS],
    ids=["quantized", "zero", "overlap", "dtypes", "delayed", "buffers-and-averages"],
)
def test_two_ranks(job, body):
    result = job(START + body + "\nline('done', rank)\n", 2)
    assert result.status == 0, result.errors
    assert result.lines("done") == ["0", "1"]


@pytest.fixture
def world():
    """One process that simulates the first of eight."""
    dist.init_process_group("fake", rank=0, world_size=8)
    yield
    dist.destroy_process_group()


def test_wrong_arguments(world):
    model = nn.Linear(2, 2)
    named = list(model.named_parameters())
    for options, kind, message in (
        ({"delay_all_reduce_named_params": named}, ValueError, "need to be set at the same time"),
        ({"param_to_hook_all_reduce": model.weight}, ValueError, "need to be set at the same time"),
        ({"device_ids": [0]}, ValueError, "device_ids and output_device arguments only work"),
        ({"skip_all_reduce_unused_params": True}, NotImplementedError, "requires_grad=False"),
        ({"bucket_cap_mb_list": [1, 25]}, NotImplementedError, "give one size as bucket_cap_mb"),
    ):
        with pytest.raises(kind, match=message):
            DistributedDataParallel(model, init_sync=False, **options)


def test_ignored_parameters_by_name(world):
    model = nn.Linear(2, 2)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["weight"])
    assert DistributedDataParallel(model, init_sync=False, batched_grad_copy=True).reducer.names == ["bias"]


def test_hierarchical_averager(world):
    averager = HierarchicalModelAverager({2: 2, 4: 4, 8: 8})
    sizes = []
    for step in range(9):
        averager.step = step
        found = averager._find_process_group()
        sizes.append(found and found.size())
    assert sizes == [8, None, 2, None, 4, None, 2, None, 8]
    for arguments, message in (
        ((None,), "must not be empty"),
        (({0: 8},), "must be a positive value"),
        (({2: 4},), "must be equal to the size"),
        (({2: 8}, -1), "non-negative"),
    ):
        with pytest.raises(ValueError, match=message):
            HierarchicalModelAverager(*arguments)
    with pytest.warns(UserWarning, match="maximum period"):
        HierarchicalModelAverager({1: 8})


def test_zero_with_overlap(world):
    from candelabra.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step

    model = nn.Linear(2, 2)
    zero = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, overlap_with_ddp=True, lr=0.1)
    with pytest.warns(UserWarning, match="should not be included"):
        assert zero.step() is None
    with pytest.raises(RuntimeError, match="single parameter group"):
        zero.add_param_group({"params": [candelabra.ones(1)]})
    groups = [{"params": [each]} for each in model.parameters()]
    with pytest.raises(RuntimeError, match="single parameter group"):
        ZeroRedundancyOptimizer(groups, optim.SGD, overlap_with_ddp=True, lr=0.1)
    apart = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1)
    with pytest.raises(ValueError, match="overlap_with_ddp=True"):
        hook_with_zero_step(lambda state, bucket: None, DistributedDataParallel(model, init_sync=False), apart)


def test_functional_optimizers():
    weights = [candelabra.ones(2), candelabra.ones(3)]
    made = as_functional_optim(optim.SGD, lr=0.5, momentum=0.5)
    made.param_group["params"] += weights
    made.step([candelabra.ones(2), None])
    made.step([candelabra.ones(2), candelabra.ones(3)])
    assert weights[0].tolist() == [-0.25] * 2 and weights[1].tolist() == [0.5] * 3 and weights[0].grad is None
    assert made.state[weights[0]]["momentum_buffer"].tolist() == [1.5] * 2
    with pytest.raises(ValueError, match="Params length: 2. Gradients length: 1"):
        made.step([None])
    with pytest.raises(ValueError, match="empty parameter list"):
        type(made)([])
    with pytest.raises(ValueError, match="does not have a functional counterpart"):
        as_functional_optim(optim.LBFGS)

    class Mine:
        def __init__(self, params, rate, _allow_empty_param_list=False):
            self.rate = rate

    register_functional_optim("mine", Mine)
    assert as_functional_optim("mine", 3).rate == 3


def test_states_of_hooks():
    from candelabra.distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks import _OptimizerHookState

    with pytest.raises(ValueError, match="must implement method step_param"):
        _OptimizerHookState(object())
    with pytest.raises(NotImplementedError, match="ZeroRedundancyOptimizer"):
        DistributedOptimizer(optim.SGD, [])


def test_integers_stand_for_gradients():
    """The scale is that of the largest and the smallest value, and zero is exact."""
    from candelabra.distributed.algorithms.ddp_comm_hooks.quantization_hooks import _scales

    scale, zero = _scales(candelabra.tensor([[-1.0, 0.5, 1.55], [0.0, 0.0, 0.0], [2.0, 4.0, 5.1]]))
    assert zero.tolist() == [100, 0, 0]
    assert candelabra.allclose(scale, candelabra.tensor([0.01, candelabra.finfo(candelabra.float32).eps, 0.02]))
