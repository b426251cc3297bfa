"""Test fully_shard: losses as DDP's, memory, mixed precision, meshes, and what PyTorch's has
besides.
"""

from __future__ import annotations

import pytest

import candelabra
import candelabra.distributed as dist
from candelabra import nn
from candelabra.distributed.fsdp import FullyShardedDataParallel, fully_shard

COMMON = """
from candelabra import nn, optim
import candelabra.nn.functional as F
from candelabra.distributed.data_parallel import DistributedDataParallel as DDP
from candelabra.distributed.device_mesh import init_device_mesh
from candelabra.distributed.fsdp import *
from candelabra.distributed.tensor import DTensor, Shard, Replicate
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=40))
rank, size = dist.get_rank(), dist.get_world_size()
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width + 3), nn.Linear(width + 3, width)
    def forward(self, x): return x + self.down(F.gelu(self.up(self.norm(x))))
class Net(nn.Module):
    def __init__(self, width=6, depth=3):
        super().__init__()
        self.embed, self.blocks, self.head = nn.Linear(5, width), nn.ModuleList(Block(width) for _ in range(depth)), nn.Linear(width, 3)
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks: x = block(x)
        return self.head(x)
def net(**options):
    candelabra.manual_seed(7)
    return Net(**options)
def shard(model, **options):
    for block in model.blocks: fully_shard(block, **options)
    return fully_shard(model, **options)
def data(step, parts=size, part=rank):
    x = candelabra.randn(4 * parts, 5, generator=candelabra.Generator().manual_seed(step))
    return x.chunk(parts)[part]
def loss(out): return out.square().mean()
def train(model, optimizer, steps=4, parts=size, part=rank):
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        value = loss(model(data(step, parts, part)))
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses
def near(a, b, limit=1e-6): assert all(abs(x - y) <= limit for x, y in zip(a, b)), (a, b)
def same(a, b, limit=1e-6):
    for (name, x), (_, y) in zip(a.named_parameters(), b.named_parameters()):
        assert candelabra.allclose(x.detach(), y.detach().full_tensor(), atol=limit), (name, x, y)
"""

TRAINING = """
for kind, options in ((optim.AdamW, dict(lr=0.01)), (optim.SGD, dict(lr=0.1, momentum=0.9, foreach=False)), (optim.Adam, dict(lr=0.01, fused=True))):
    plain = DDP(net()); sharded = shard(net())
    expected = train(plain, kind(plain.parameters(), **options))
    optimizer = kind(sharded.parameters(), **options)
    near(train(sharded, optimizer), expected)
    same(plain.module, sharded)
    assert all(isinstance(each, DTensor) and each.placements == (Shard(0),) for each in sharded.parameters())
    state = optimizer.state[sharded.blocks[0].up.weight]
    assert all(each.to_local().shape == sharded.blocks[0].up.weight.to_local().shape for each in state.values() if isinstance(each, DTensor)), state
assert type(sharded).__name__ == "FSDPNet" and isinstance(sharded, Net) and isinstance(sharded.blocks[0], FSDPModule)
# Clipping the norm of sharded gradients
for model in (plain, sharded): model.zero_grad(); loss(model(data(1))).backward()
a, b = nn.utils.clip_grad_norm_(plain.parameters(), 0.01), nn.utils.clip_grad_norm_(sharded.parameters(), 0.01)
near([a.item()], [b.item()]); near(plain.module.head.weight.grad.view(-1).tolist(), sharded.head.weight.grad.full_tensor().view(-1).tolist())
# One collective for a block, each way; the next block is gathered while one computes.
calls = []
from candelabra.distributed.process_group import ProcessGroup
collective = ProcessGroup.collective
ProcessGroup.collective = lambda self, kind, *a, **k: (calls.append(kind), collective(self, kind, *a, **k))[1]
sharded.zero_grad(); out = sharded(data(0)); count = len(calls); loss(out).backward()
ProcessGroup.collective = collective
assert calls == ["all_gather"] * 4 + ["all_gather"] * 3 + ["reduce_scatter"] * 4 or sorted(calls) == sorted(["all_gather"] * 7 + ["reduce_scatter"] * 4), calls
assert count == 4, calls
# Gradients accumulate without being reduced.
plain, sharded = net(), shard(net())
for step in range(3):
    sharded.set_requires_gradient_sync(step == 2)
    loss(sharded(data(step))).backward()
    assert (sharded.head.weight.grad is None) == (step < 2)
    for part in range(size): (loss(plain(data(step, size, part))) / size).backward()
near(plain.head.weight.grad.view(-1).tolist(), sharded.head.weight.grad.full_tensor().view(-1).tolist())
near(plain.blocks[0].up.bias.grad.tolist(), sharded.blocks[0].up.bias.grad.full_tensor().tolist())
# Checkpoints of activations, frozen parameters, parameters without gradients, tied ones
from candelabra.autograd.checkpoint import checkpoint
class Checkpointed(Net):
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks: x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)
candelabra.manual_seed(7); model = shard(Checkpointed()); plain = DDP(net())
near(train(model, optim.SGD(model.parameters(), lr=0.1)), train(plain, optim.SGD(plain.parameters(), lr=0.1)))
frozen, plain = net(), net()
for each in (frozen, plain): each.blocks[1].requires_grad_(False); each.blocks[2].up.requires_grad_(False)
shard(frozen); plain = DDP(plain)
near(train(frozen, optim.SGD(frozen.parameters(), lr=0.1)), train(plain, optim.SGD([p for p in plain.parameters() if p.requires_grad], lr=0.1)))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.unused = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 2)
        self.b.weight = self.a.weight
    def forward(self, x): return {"out": [self.b(self.a(x))]}
candelabra.manual_seed(1); plain = Tied(); candelabra.manual_seed(1); tied = fully_shard(Tied())
loss(tied(data(0))["out"][0]).backward()
for part in range(size): (loss(plain(data(0, size, part))["out"][0]) / size).backward()
assert tied.a.weight is tied.b.weight and tied.unused.weight.grad is None
near(plain.a.weight.grad.view(-1).tolist(), tied.a.weight.grad.full_tensor().view(-1).tolist())
"""

MEMORY = """
def allocated(): return candelabra._C.memory_statistics(candelabra.device("cpu"))["allocated"]
class Probe(nn.Module):
    def forward(self, x): seen.append(allocated()); return x
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.probe = nn.Linear(256, 256, bias=False), Probe()
    def forward(self, x): return self.probe(self.linear(x)).relu()
BLOCK, DEPTH = 256 * 256 * 4, 8
class Backward(candelabra.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, grad): seen.append(allocated()); return grad
seen = []
start = allocated()
model = nn.Sequential(*(Wide() for _ in range(DEPTH)))
for block in model: fully_shard(block, reshard_after_forward=True)
fully_shard(model, reshard_after_forward=True)
slack = 40_000  # activations of one row
assert allocated() - start <= BLOCK * DEPTH / size + slack, (allocated() - start) / BLOCK
for block in model: block.set_modules_to_forward_prefetch([]); block.set_modules_to_backward_prefetch([])
optimizer = optim.SGD(model.parameters(), lr=0.1)
x = candelabra.ones(1, 256)
for step in range(2):
    out = model(x)
    assert len(seen) == DEPTH and max(seen) - start <= BLOCK * DEPTH / size + BLOCK + slack, [(each - start) / BLOCK for each in seen]
    assert allocated() - start <= BLOCK * DEPTH / size + slack
    seen.clear()
    out.sum().backward()
    assert allocated() - start <= 2 * BLOCK * DEPTH / size + slack, (allocated() - start) / BLOCK
    optimizer.step(); optimizer.zero_grad(); del out
    assert allocated() - start <= BLOCK * DEPTH / size + slack
model = None
"""

KEPT = """
# Pairs of ranks keep the parameters between forward and backward.
plain = DDP(net()); expected = train(plain, optim.AdamW(plain.parameters(), lr=0.01))
model = shard(net(), reshard_after_forward=2)
near(train(model, optim.AdamW(model.parameters(), lr=0.01)), expected)
same(plain.module, model)
from candelabra.distributed.process_group import ProcessGroup
calls = []
collective = ProcessGroup.collective
ProcessGroup.collective = lambda self, kind, *a, **k: (calls.append((kind, self.size())), collective(self, kind, *a, **k))[1]
model = shard(net(), reshard_after_forward=2)
group = model.blocks[0]._fsdp_state.group
for step in range(2):
    calls.clear()
    out = model(data(step))
    assert calls == [("all_gather", 4)] * 4 and isinstance(model.blocks[0].up.weight, DTensor), calls
    assert group._kept and sum(part._part.numel() for part, _ in group._kept) == -(-sum(p.numel() for p in model.blocks[0].parameters()) // 2)
    calls.clear()
    loss(out).backward()
    assert sorted(calls) == sorted([("all_gather", 2)] * 4 + [("reduce_scatter", 4)] * 4), calls
    assert group._kept is None
# What is kept is used in the backward pass only, and only until it is freed.
model(data(0)); model.blocks[0].reshard(); assert group._kept is None
out = model(data(0)); assert group._kept
with candelabra.no_grad(): model(data(1))
assert group._kept is None
model.set_reshard_after_forward(True); model(data(0)); assert group._kept is None
ProcessGroup.collective = collective
# Gradients of two forward passes, checkpoints of activations, two dimensions of the mesh
plain, model = net(), shard(net(), reshard_after_forward=2)
first, second = model(data(0)), model(data(1))
(loss(first) + loss(second)).backward()
for part in range(size):
    for step in range(2): (loss(plain(data(step, size, part))) / size).backward()
near(plain.blocks[0].up.weight.grad.view(-1).tolist(), model.blocks[0].up.weight.grad.full_tensor().view(-1).tolist())
from candelabra.autograd.checkpoint import checkpoint
class Checkpointed(Net):
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks: x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)
candelabra.manual_seed(7); model = shard(Checkpointed(), reshard_after_forward=2)
near(train(model, optim.AdamW(model.parameters(), lr=0.01)), expected)
"""

VARIANTS = """
expected = train(DDP(plain := net()), optim.AdamW(plain.parameters(), lr=0.01), parts=size)
def check(model, limit=1e-6, steps=4, parts=size, part=rank):
    near(train(model, optim.AdamW(model.parameters(), lr=0.01), steps, parts, part), expected, limit)
    return model
# Two dimensions: replicate and shard
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
model = shard(net(), mesh=mesh)
assert model.head.weight.placements == (Replicate(), Shard(0)) and model.head.weight.to_local().shape[0] == (2 if rank % 2 == 0 else 1)
same(plain, check(model))
model.zero_grad(); model.set_requires_all_reduce(False); loss(model(data(1))).backward(); assert model.head.weight.grad is None
model.set_requires_all_reduce(True); loss(model(data(2))).backward(); assert model.head.weight.grad is not None
# With tensor parallelism
from candelabra.distributed.tensor.parallel import *
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
def parallel(**options):
    model = net(width=8, depth=2)
    for block in model.blocks: parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return shard(model, mesh=mesh["dp"], **options)
class Even(Block):
    def __init__(self, width):
        super().__init__(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
Block = Even
plain = net(width=8, depth=2)
optimizer = optim.AdamW(plain.parameters(), lr=0.01)
expected = []
for step in range(4):
    optimizer.zero_grad()
    values = [loss(plain(data(step, 2, part))) for part in range(2)]
    for each in values: (each / 2).backward()
    optimizer.step(); expected.append(values[rank // 2].item())
model = check(parallel(), parts=2, part=rank // 2)
up, down = model.blocks[0].up.weight, model.blocks[0].down.weight
assert up.device_mesh.mesh_dim_names == ("dp", "tp") and up.to_local().shape == (8, 8) and down.placements == (Shard(0), Shard(1)), (up.placements, down.placements)
same(plain, model)
# Other dimensions, no resharding, lists of modules
Block = Block.__mro__[1]
plain = net(); expected = train(DDP(plain), optim.AdamW(plain.parameters(), lr=0.01))
model = net(width=6); model = fully_shard(model, shard_placement_fn=lambda p: Shard(1) if p.ndim == 2 and p.shape[1] % size == 0 else None)
check(model); check(shard(net(), reshard_after_forward=False)); check(fully_shard(net()))
model = net(); fully_shard([model.embed, *model.blocks]); fully_shard(model); check(model)
model = shard(net(), offload_policy=CPUOffloadPolicy()); check(model)
model = shard(net()); model.set_reshard_after_backward(False); loss(model(data(0))).backward(); assert not isinstance(model.head.weight, DTensor)
model.set_reshard_after_backward(True); model.set_reshard_after_forward(True); model.zero_grad(); loss(model(data(0))).backward(); assert isinstance(model.head.weight, DTensor)
ignored = net(); shard(ignored, ignored_params={ignored.head.weight}); assert not isinstance(ignored.head.weight, DTensor) and isinstance(ignored.head.bias, DTensor)
# Mixed precision
low = dict(param_dtype=candelabra.bfloat16, reduce_dtype=candelabra.float32)
model = net()
for block in model.blocks: fully_shard(block, mp_policy=MixedPrecisionPolicy(**low))
fully_shard(model, mp_policy=MixedPrecisionPolicy(**low, output_dtype=candelabra.float32))
out = model(data(0)); assert out.dtype == candelabra.float32 and model.head.weight.dtype == candelabra.bfloat16
loss(out).backward(); assert model.head.weight.grad.dtype == model.head.weight.dtype == candelabra.float32
check(model, 0.1)
# By hand
model = shard(net())
handle = model.blocks[0].unshard(async_op=True); handle.wait(); assert model.blocks[0].up.weight.shape == (9, 6) and not isinstance(model.blocks[0].up.weight, DTensor)
loss(model(data(0))).backward(); assert model.blocks[0].up.weight.grad is not None; model.zero_grad()
model.blocks[0].reshard(); assert isinstance(model.blocks[0].up.weight, DTensor)
Net.features = lambda self, x: self.embed(x).sum()
register_fsdp_forward_method(model, "features"); model.features(data(0)).backward(); assert model.embed.weight.grad is not None
with candelabra.no_grad(): model(data(0))
saved = model.state_dict()
assert all(isinstance(each, DTensor) for each in saved.values())
other = shard(Net()); other.load_state_dict(saved)
for (name, a), (_, b) in zip(other.named_parameters(), saved.items()): assert (a.full_tensor() == b.full_tensor()).all(), name
optimizer = optim.AdamW(other.parameters(), lr=0.01); train(other, optimizer, 1)
again = optim.AdamW(other.parameters(), lr=0.5); again.load_state_dict(optimizer.state_dict())
assert again.state[other.head.weight]["exp_avg"].placements == (Shard(0),); train(other, again, 1)
# A checkpoint of one mesh is loaded on another, and into a plain module
import candelabra.distributed.checkpoint as checkpoint
folder = os.path.join(os.path.dirname(sys.argv[0]), "saved")
hybrid = shard(net(), mesh=init_device_mesh("cpu", (2, 2)))
checkpoint.save({"model": hybrid.state_dict()}, checkpoint_id=folder)
for into in (shard(Net()), Net()):
    checkpoint.load({"model": into.state_dict()}, checkpoint_id=folder)
    for (name, a), (_, b) in zip(hybrid.named_parameters(), into.named_parameters()):
        assert (a.full_tensor() == (b.full_tensor() if isinstance(b, DTensor) else b)).all(), name
# A pass that fails, a conversion, values from the meta device
class Failing(nn.Module):
    def forward(self, x): raise KeyError("no")
model = shard(net()); model.head, head = Failing(), model.head
raised(KeyError, model, data(0)); model.reset_iter_state(); model.head = head
check(model)
model.double(); assert model(data(0).double()).dtype == candelabra.float64
model.reshard(); assert model.embed.weight.to_local().dtype == candelabra.float64
with candelabra.device("meta"): model = Net()
shard(model); assert "materialized from meta device" in raised(RuntimeError, model, data(0))
model.to_empty(device="cpu")
for each in model.parameters(): nn.init.constant_(each, 0.01)
assert model(data(0)).isfinite().all()
"""


@pytest.mark.parametrize(
    ("body", "ranks"),
    [(TRAINING + MEMORY, 2), (KEPT, 4), (VARIANTS, 4)],
    ids=["training-and-memory", "kept", "variants"],
)
def test_ranks(job, body, ranks):
    result = job(COMMON + body + "\nline('done', rank)\n", ranks, timeout=200)
    assert result.status == 0, result.errors
    assert result.lines("done") == [str(rank) for rank in range(ranks)]


@pytest.fixture
def world():
    """One process that simulates the first of two."""
    dist.init_process_group("fake", rank=0, world_size=2)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("module", "options", "kind", "message"),
    [
        (nn.ModuleList([nn.Linear(1, 1)]), {}, ValueError, "do not implement forward"),
        (nn.Linear(2, 2), {"reshard_after_forward": 3}, ValueError, "it should be a factor of 2, not 3"),
        (nn.Linear(2, 2), {"reshard_after_forward": 0}, ValueError, "it should be a factor of 2, not 0"),
        (nn.Linear(2, 2), {"reshard_after_forward": "all"}, ValueError, "should be a bool or an int"),
        (nn.Linear(3, 2), {"shard_placement_fn": lambda p: 1}, ValueError, "returns a Shard or None"),
        (nn.LazyLinear(2), {}, ValueError, "not initialized"),
    ],
)
def test_wrong_arguments(world, module, options, kind, message):
    with pytest.raises(kind, match=message):
        fully_shard(module, **options)


def test_one_rank_keeps_everything(world):
    with pytest.warns(UserWarning, match="reshard_after_forward=1"):
        model = fully_shard(nn.Linear(2, 2), reshard_after_forward=1)
    assert not model._fsdp_state.group.reshard_after_forward
    whole = fully_shard(nn.Linear(2, 2), reshard_after_forward=2)._fsdp_state.group
    assert whole.reshard_after_forward and whole.post_forward is None


def test_what_is_refused(world):
    model = fully_shard(nn.Linear(2, 2))
    with pytest.raises(AssertionError, match="before"):
        fully_shard(model)
    with pytest.raises(ValueError, match="Expects FSDPModule"):
        model.set_modules_to_forward_prefetch([nn.Linear(1, 1)])
    with pytest.raises(NotImplementedError, match="use candelabra.distributed.fsdp.fully_shard"):
        FullyShardedDataParallel(nn.Linear(1, 1))
    assert candelabra.is_grad_enabled()
