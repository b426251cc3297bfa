"""Test what can be set for sharded modules: collectives, reductions, unused parameters, meshes with
names.
"""

from __future__ import annotations

import pytest
from test_fully_shard import COMMON

import candelabra.distributed as dist
from candelabra import nn
from candelabra.distributed.device_mesh import init_device_mesh
from candelabra.distributed.fsdp import DataParallelMeshDims, FSDPModule, fully_shard, share_comm_ctx
from candelabra.distributed.tensor import Replicate, Shard, distribute_tensor

REDUCTIONS = """
from candelabra.distributed.fsdp.communication import AllGather, ReduceScatter
from candelabra.distributed.collectives.reductions import reduce_scatter_tensor
calls = []
class Gathers(AllGather):
    def allocate(self, size, *, dtype, device): return candelabra.empty(size, dtype=dtype, device=device)
    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        calls.append("gather"); return dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)
class Reduces(ReduceScatter):
    def allocate(self, size, *, dtype, device): calls.append(tuple(size)); return candelabra.zeros(size, dtype=dtype, device=device)
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        calls.append(op); reduce_scatter_tensor(output_tensor, input_tensor, op, group)  # done, so that there is no work
def custom(model):
    model.blocks[0].set_custom_all_gather(Gathers()); model.blocks[0].set_custom_reduce_scatter(Reduces())
def each(name, *arguments):
    return lambda model: [getattr(module, name)(*arguments) for module in model.modules() if isinstance(module, FSDPModule)]
plain = DDP(net())
expected = train(plain, optim.SGD(plain.parameters(), lr=0.1))
for settings in (
    [], [lambda model: model.set_reduce_scatter_max_input_buffers(3)], [lambda model: model.set_separate_reduce_scatter_group()],
    [each("set_force_sum_reduction_for_comms", True)], [each("set_gradient_divide_factor", float(size))], [custom], [each("set_unshard_in_backward", False)],
    [lambda model: model.set_reduce_scatter_unused_params(True)], [lambda model: share_comm_ctx([model])],
    [lambda model: model.set_separate_reduce_scatter_group(), lambda model: model.set_separate_reduce_scatter_group(False), lambda model: model.set_post_optim_event(None)],
):
    model = shard(net())
    for setting in settings: setting(model)
    near(train(model, optim.SGD(model.parameters(), lr=0.1)), expected)
    same(plain.module, model)
count = sum(-(-p.shape[0] // size) * (p.numel() // p.shape[0]) for p in net().blocks[0].parameters())
assert calls.count("gather") == 8 and calls.count((count,)) == 4 and calls.count((count * size,)) == 4 and calls.count(dist.ReduceOp.AVG) == 4, calls
# A hook changes the reduced gradients.
model, other = shard(net()), shard(net())
each("set_all_reduce_hook", lambda reduced: reduced.mul_(2.0))(model)
for made in (model, other): loss(made(data(0))).backward()
near(model.head.weight.grad.full_tensor().view(-1).tolist(), (2 * other.head.weight.grad.full_tensor()).view(-1).tolist())
mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("replicate", "shard"))
model = shard(net(), mesh=mesh); each("set_all_reduce_hook", lambda reduced: reduced.mul_(3.0))(model); each("set_force_sum_reduction_for_comms", True)(model)
loss(model(data(0))).backward()
near(model.head.weight.grad.full_tensor().view(-1).tolist(), (3 * other.head.weight.grad.full_tensor()).view(-1).tolist())
"""
UNUSED = """
# Ranks use different parameters of a module.
class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
    def forward(self, x): return x + self.experts[rank](x)
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks, self.head = nn.Linear(5, 6), nn.ModuleList([Routed(), Routed()]), nn.Linear(6, 3)
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks: x = block(x)
        return self.head(x)
for sharded_first in (False, True):
    candelabra.manual_seed(3); plain = DDP(Experts(), find_unused_parameters=True)
    candelabra.manual_seed(3); model = Experts()
    if sharded_first: fully_shard(model.first)
    shard(model); model.set_reduce_scatter_unused_params(True)
    near(train(model, optim.SGD(model.parameters(), lr=0.1)), train(plain, optim.SGD(plain.parameters(), lr=0.1)))
    same(plain.module, model)
    model.zero_grad(); loss(model(data(1))).backward(); assert model.blocks[0].experts[2].weight.grad.full_tensor().eq(0).all()
"""
EMBEDDING = """
# An embedding does not need its parameters in the backward pass.
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(8, 6), nn.Linear(6, 3)
    def forward(self, x): return self.head(self.embed(x))
def words(): candelabra.manual_seed(2); return Words()
def step(model): loss(model(candelabra.arange(8).roll(rank).view(2, 4))).backward()
plain = DDP(words()); step(plain)
from candelabra.distributed.process_group import ProcessGroup
collective = ProcessGroup.collective
for needs in (True, False):
    model = words(); fully_shard(model.embed, reshard_after_forward=True); fully_shard(model)
    model.set_modules_to_backward_prefetch([]); model.embed.set_unshard_in_backward(needs)
    calls = []
    out = model(candelabra.arange(8).roll(rank).view(2, 4))
    ProcessGroup.collective = lambda self, kind, *a, **k: (calls.append(kind), collective(self, kind, *a, **k))[1]
    loss(out).backward()
    ProcessGroup.collective = collective
    assert calls.count("all_gather") == needs and calls.count("reduce_scatter") == 2, calls
    near(model.embed.weight.grad.full_tensor().view(-1).tolist(), plain.module.embed.weight.grad.view(-1).tolist())
"""
NAMED = """
from candelabra.distributed.tensor import distribute_tensor
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
def placed(placements):
    model = net()
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None: module._parameters[name] = nn.Parameter(distribute_tensor(parameter.detach(), mesh, placements))
    return model
plain = net()
model = placed([Replicate(), Replicate()])
for block in model.blocks: fully_shard(block, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard="dp", replicate="tp"))
fully_shard(model, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard="dp", replicate="tp"))
losses = train(model, optim.SGD(model.parameters(), lr=0.1)); plain = DDP(plain)
near(losses, train(plain, optim.SGD(plain.parameters(), lr=0.1))); same(plain.module, model)
assert model.head.weight.placements == (Replicate(), Shard(0)) and model.head.weight.device_mesh.mesh_dim_names == ("tp", "dp")
model = placed([Replicate(), Replicate()])
fully_shard(model, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard=("dp", "tp")))
near(train(model, optim.SGD(model.parameters(), lr=0.1)), losses)
assert model.head.weight.device_mesh.shape == (4,)
# Along the other dimension parameters stay sharded.
model = placed([Replicate(), Shard(0)])
fully_shard(model.head, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard="dp"))
assert model.head.weight.device_mesh.mesh_dim_names == ("dp", "tp") and model.head.weight.placements[1] == Shard(0), model.head.weight.placements
candelabra.testing.assert_close(model.head.weight.full_tensor().detach(), net().head.weight.detach())
"""


@pytest.mark.parametrize(
    ("body", "ranks"),
    [(REDUCTIONS, 2), (UNUSED, 2), (EMBEDDING, 2), (NAMED, 4)],
    ids=["reductions", "unused", "embedding", "named"],
)
def test_ranks(job, body, ranks):
    result = job(COMMON + body + "\nline('done', rank)\n", ranks)
    assert result.status == 0, result.errors
    assert result.lines("done") == [str(rank) for rank in range(ranks)]


@pytest.fixture
def world():
    dist.init_process_group("fake", rank=0, world_size=4)
    yield
    dist.destroy_process_group()


def test_wrong_settings(world):
    model = fully_shard(nn.Linear(4, 4))
    for call, kind, message in (
        (lambda: model.set_reduce_scatter_max_input_buffers(True), TypeError, "must be an int, got bool"),
        (lambda: model.set_reduce_scatter_max_input_buffers(0), ValueError, "must be a positive int"),
        (lambda: share_comm_ctx([nn.Linear(1, 1)]), ValueError, "Expects list of FSDPModules"),
        (lambda: model.set_symm_mem_for_comm(), NotImplementedError, "set_custom_all_gather"),
        (lambda: model.set_allocate_memory_from_process_group_for_comm(True), NotImplementedError, "AllGather"),
        (DataParallelMeshDims, ValueError, "At least one of shard or replicate"),
    ):
        with pytest.raises(kind, match=message):
            call()
    model.set_allocate_memory_from_process_group_for_comm(False)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    hybrid = fully_shard(nn.Linear(4, 4), mesh=mesh)
    with pytest.raises(ValueError, match="stream cannot be set"):
        hybrid.set_all_reduce_hook(lambda reduced: None, stream=object())


def test_wrong_meshes(world):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    dims = DataParallelMeshDims(shard="dp")
    linear = nn.Linear(4, 4)
    with pytest.raises(ValueError, match="expects parameters that are DTensors"):
        fully_shard(linear, mesh=mesh, dp_mesh_dims=dims)
    linear.weight = nn.Parameter(distribute_tensor(linear.weight.detach(), mesh, [Shard(0), Replicate()]))
    with pytest.raises(ValueError, match="weight must be Replicate"):
        fully_shard(linear, mesh=mesh, dp_mesh_dims=dims)
    with pytest.raises(ValueError, match="'pp' not found"):
        fully_shard(linear, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard="pp"))
    with pytest.raises(ValueError, match="must have mesh_dim_names"):
        fully_shard(linear, mesh=init_device_mesh("cpu", (4,)), dp_mesh_dims=dims)
    with pytest.raises(NotImplementedError, match="DistributedDataParallel"):
        fully_shard(linear, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(replicate="dp"))


def test_a_slice_of_a_sharded_container_is_plain(world):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    fully_shard(model)
    part = model[:2]
    assert isinstance(model, FSDPModule) and type(part) is nn.Sequential and len(part) == 2
