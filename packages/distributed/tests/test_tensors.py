"""Test DTensor: each operator class against the whole tensor, and gradients, on 2 and 4 ranks."""

from __future__ import annotations

import pytest

import candelabra
import candelabra.distributed as dist
from candelabra.distributed.checkpoint.sharded import Sharded
from candelabra.distributed.device_mesh import DeviceMesh, init_device_mesh
from candelabra.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from candelabra.distributed.tensor.layout import compute_local_shape_and_global_offset
from candelabra.distributed.tensor.placements import _StridedShard

COMMON = """
import itertools
from candelabra import nn, optim
import candelabra.nn.functional as F
from candelabra.distributed.device_mesh import DeviceMesh, init_device_mesh
from candelabra.distributed.tensor import *
from candelabra.distributed.tensor import rand, randn
from candelabra.distributed.tensor.placements import _StridedShard
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=40))
rank, size = dist.get_rank(), dist.get_world_size()
R, P = Replicate(), Partial()
S = Shard
def whole(*shape, seed=0):
    return candelabra.randn(*shape, generator=candelabra.Generator().manual_seed(seed), dtype=candelabra.float64)
def close(a, b, what):
    assert a.shape == b.shape and candelabra.allclose(a, b, atol=1e-10), (what, a, b)
def spread(x, mesh, places):
    if not isinstance(x, candelabra.Tensor): return x
    places = [each if not isinstance(each, S) or each.dim < x.ndim else R for each in places]
    if x.dtype == candelabra.int64: places = [each if isinstance(each, S) else R for each in places]
    return distribute_tensor(x, mesh, places, src_data_rank=None)
def check(name, f, inputs, mesh, *places):
    # Compare results and gradients of an operator on parts with those on whole tensors.
    plain = [x.clone().requires_grad_(x.is_floating_point()) if isinstance(x, candelabra.Tensor) else x for x in inputs]
    parts = [spread(x, mesh, p) for x, p in zip(inputs, itertools.cycle(places))]
    parts = [x.requires_grad_(x.is_floating_point()) if isinstance(x, DTensor) else x for x in parts]
    what = name, places
    a, b = f(*plain), f(*parts)
    a, b = (list(each) if isinstance(each, (tuple, list)) else [each] for each in (a, b))
    for x, y in zip(a, b): close(x.detach(), y.detach().full_tensor(), what)
    if a[0].requires_grad:
        weights = whole(*a[0].shape, seed=9)
        (a[0] * weights).sum().backward()
        (b[0] * distribute_tensor(weights, mesh, src_data_rank=None)).sum().backward()
        for x, y in zip(plain, parts):
            if isinstance(x, candelabra.Tensor) and x.grad is not None: close(x.grad, y.grad.full_tensor(), (*what, "gradient"))
"""

REDISTRIBUTE = """
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
for shape in ((4, 6), (5, 3)):
    x = whole(*shape)
    kinds = [R, S(0), S(1), P]
    pairs = list(itertools.product(kinds, kinds)) + [(_StridedShard(0, split_factor=2), S(0)), (_StridedShard(0, split_factor=2), R)]
    targets = [each for each in pairs if P not in each]
    for number, source in enumerate(pairs):
        d = distribute_tensor(x, mesh, source, src_data_rank=None)
        close(d.full_tensor(), x, source)
        target = targets[(number * 5 + shape[0]) % len(targets)]
        moved = d.redistribute(placements=target)
        assert moved.placements == target
        close(moved.to_local(), distribute_tensor(x, mesh, target, src_data_rank=None).to_local(), (source, target))
# Reductions of other kinds, and uneven parts.
flat = init_device_mesh("cpu", (4,))
for op, expected in (("max", 3.0), ("min", 0.0), ("avg", 1.5), ("product", 0.0)):
    d = DTensor.from_local(candelabra.full((6,), float(rank)), flat, [Partial(op)])
    assert d.full_tensor().tolist() == [expected] * 6, op
    assert d.redistribute(placements=[S(0)]).full_tensor().tolist() == [expected] * 6
d = distribute_tensor(candelabra.arange(5), flat, [S(0)])
assert d.to_local().tolist() == [[0, 1], [2, 3], [4], []][rank] and d.full_tensor().tolist() == [0, 1, 2, 3, 4]
# Gradients of the way from and to local tensors.
local = candelabra.ones(2, 3, requires_grad=True)
DTensor.from_local(local, flat, [S(0)]).full_tensor().mul(rank + 1.0).sum().backward()
assert local.grad.tolist() == [[rank + 1.0] * 3] * 2, local.grad
local = candelabra.ones(2, requires_grad=True)
d = DTensor.from_local(local, flat, [R])
(d.to_local(grad_placements=[P]) * (rank + 1.0)).sum().backward()
assert local.grad.tolist() == [10.0, 10.0], local.grad
with flat: assert DTensor.from_local(candelabra.full((2,), float(rank)), placements=[R], run_check=True).to_local().tolist() == [0, 0]
x = distribute_tensor(candelabra.full((3,), float(rank)), flat, [S(0)])
assert x.full_tensor().tolist() == [0, 0, 0] and x.sum().item() == 0 and not x.any()
assert distribute_tensor(candelabra.full((3,), float(rank)), flat, src_data_rank=2).to_local().tolist() == [2, 2, 2]
# Meshes
assert mesh["a"].get_group().ranks == [rank % 2, rank % 2 + 2] and mesh.get_local_rank("b") == rank % 2
both = mesh._flatten("ab")
assert both.get_group().ranks == [0, 1, 2, 3] and mesh["ab"] is both or mesh["ab"] == both
x = candelabra.ones(1); dist.all_reduce(x, group=mesh.get_group("a")); assert x.item() == 2
again = DeviceMesh.from_group(mesh.get_all_groups(), "cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "b"))
assert again == mesh and again.get_group(0) is mesh.get_group(0)
"""

OPERATORS = """
mesh = init_device_mesh("cpu", (size,)) if size == 2 else init_device_mesh("cpu", (2, 2))
n = mesh.ndim
def checks(name, f, *inputs, kinds=(R, S(0), S(1), P)):
    for turn, kind in list(enumerate(kinds))[:: 1 if n == 1 else 2]:  # in two dimensions, another comes with it
        other = kinds[(turn + 1) % len(kinds)]
        check(name, f, inputs, mesh, [kind, other][:n], [other, R][:n], [R, kind][:n])
x, y = whole(4, 6), whole(4, 6, seed=1)
checks("add", lambda a, b: a + b, x, y)
checks("mul", lambda a, b: a * b - a / 3 + 2, x, whole(6, seed=2))
checks("gelu", lambda a: F.gelu(a).exp(), x)
checks("where", lambda a, b: candelabra.where(a > b, a, b).clamp(min=-1), x, y)
checks("linear", lambda a, w, b: F.linear(a, w, b), whole(4, 2, 6), whole(8, 6, seed=1), whole(8, seed=2))
checks("mm", lambda a, b: a @ b, x, whole(6, 5, seed=1))
checks("addmm", lambda a, b, c: candelabra.addmm(a, b, c), whole(5), x, whole(6, 5, seed=1))
checks("bmm", lambda a, b: a @ b, whole(2, 3, 4), whole(2, 4, 5, seed=1))
checks("sum", lambda a: (a.sum(0), a.sum(), a.mean(1, keepdim=True), a.mean(), a.amax(0), a.var(0)), whole(5, 6))
checks("norm", lambda a: (candelabra.linalg.vector_norm(a), candelabra.linalg.vector_norm(a, 1, 0), a.abs().max(), candelabra.linalg.vector_norm(a, float("inf"))), x)
checks("softmax", lambda a: (F.softmax(a, -1), F.log_softmax(a, 0), a.cumsum(1), a.logsumexp(0)), x)
checks("sort", lambda a: (a.sort(1)[0], a.topk(2, 0)[0], a.argmax(1), a.max(0)[0]), x)
checks("views", lambda a: (a.view(2, 2, 6).transpose(0, 1).reshape(4, 6), a.t(), a.unsqueeze(1).expand(4, 3, 6), a.flatten(), a[1:3], a[1], a.permute(1, 0).unflatten(0, (3, 2)), a.squeeze()), x)
checks("parts", lambda a: a[:, 1:3].sum(1) + a.chunk(2, 0)[1].sum() + a[0, 1] + candelabra.cat([a, a], 1).sum(1), x)
checks("cat", lambda a, b: (candelabra.cat([a, b], 0), candelabra.stack([a, b], 1)), x, y)
checks("layer_norm", lambda a, w, b: F.layer_norm(a, (6,), w, b), whole(4, 2, 6), whole(6, seed=1), whole(6, seed=2))
checks("rms_norm", lambda a, w: F.rms_norm(a, (6,), w), x, whole(6, seed=1))
checks("group_norm", lambda a, w, b: F.group_norm(a, 2, w, b), whole(4, 4, 3), whole(4, seed=1), whole(4, seed=2))
ids = candelabra.tensor([[0, 3, 7, 1], [2, 2, 5, 6]])
checks("embedding", lambda w, i: F.embedding(i, w), whole(8, 6), ids, kinds=(R, S(0), S(1)))
checks("cross_entropy", lambda a, t: F.cross_entropy(a, t), whole(6, 5), candelabra.tensor([0, 1, 2, 3, 4, -100]), kinds=(R, S(0), S(1)))
checks("nll sum", lambda a, t, w: F.cross_entropy(a, t, w, reduction="sum"), whole(6, 5), candelabra.tensor([0, 1, 2, 3, 4, 0]), whole(5, seed=1).abs(), kinds=(R, S(0)))
checks("nll none", lambda a, t: F.cross_entropy(a, t, reduction="none"), whole(6, 5), candelabra.tensor([0, 1, 2, 3, 4, 0]), kinds=(R, S(0)))
checks("mse", lambda a, b: F.mse_loss(a, b) + F.smooth_l1_loss(a, b), x, y)
checks("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), whole(2, 4, 3, 5), whole(2, 4, 3, 5, seed=1), whole(2, 4, 3, 5, seed=2))
checks("conv", lambda a, w, b: F.avg_pool2d(F.max_pool2d(F.conv2d(a, w, b, padding=1), 2), 2), whole(4, 2, 8, 8), whole(4, 2, 3, 3, seed=1), whole(4, seed=2))
index = candelabra.tensor([3, 0, 2])
checks("indexing", lambda a, i: (a.index_select(0, i), a[i], a.gather(0, i.view(3, 1).expand(3, 6)), a[:, i]), x, index, kinds=(R, S(0), S(1)))
checks("triangles", lambda a: (a.tril(), a.flip(0), F.pad(a, (1, 1)), a.abs().prod(0)), x)
if size == 4: check("uneven", lambda a, w: F.linear(a.relu(), w).sum(0), (whole(5, 3), whole(7, 3, seed=1)), DeviceMesh("cpu", [0, 1, 2, 3]), [S(0)], [S(0)])
# The choice of a rule moves no data where none has to move.
a, w = distribute_tensor(x, mesh, [S(0)] * n), distribute_tensor(whole(8, 6), mesh, [R] * n)
assert F.linear(a, w).relu().placements == (S(0),) * n
assert a.sum(0).placements == (P,) * n and (a.sum(0) * 2 + a.sum(0)).placements == (P,) * n
assert a.view(4, 2, 3).placements == (S(0),) * n and a.t().placements == (S(1),) * n
# In place
b = a.clone(); c = b.add_(1).mul_(distribute_tensor(y, mesh, [R] * n))
assert c is b and b.placements == a.placements; close(b.full_tensor(), (x + 1) * y, "in place")
b = distribute_tensor(x, mesh, [R] * n); b.add_(a); close(b.full_tensor(), x + x, "in place"); assert b.placements == (R,) * n
b.copy_(a); close(b.full_tensor(), x, "copy"); b[0].zero_(); assert b.full_tensor()[0].abs().sum() == 0
# Pending sums
p = distribute_tensor(x, mesh, [P] * n)
assert (p / 2).placements == (P,) * n and (p + 1).placements != (P,) * n; close((p + 1).full_tensor(), x + 1, "number")
close(p.to(candelabra.int64).full_tensor(), x.to(candelabra.int64), "rounded")
assert p.float().placements == (P,) * n
p.add_(a); close(p.full_tensor(), 2 * x, "in place"); p.zero_(); assert p.placements == (P,) * n and not p.any()
# What is refused
text = raised(NotImplementedError, candelabra.linalg.inv, distribute_tensor(candelabra.eye(3), mesh))
assert "linalg_inv_ex has no rule for DTensor" in text and "to_local" in text
text = raised(RuntimeError, lambda: a + candelabra.ones(4, 6)); assert "mixed torch.Tensor and DTensor" in text
from candelabra.distributed.tensor.experimental import implicit_replication
with implicit_replication(): close((a + y).full_tensor(), x + y, "implicit")
close((a + candelabra.tensor(2.0)).full_tensor(), x + 2, "scalar")
raised(RuntimeError, a.redistribute, placements=[P] * n); raised(RuntimeError, distribute_tensor, x, mesh, [S(2)] * n); raised(TypeError, a.__reduce_ex__, 4)
"""

RANDOM = """
mesh = init_device_mesh("cpu", (size,))
candelabra.manual_seed(5 + rank)  # the ranks' generators differ: those of rank 0 count
made = randn(5, 4, device_mesh=mesh, placements=[S(0)]); more = rand(3, 4, device_mesh=mesh, placements=[S(1)])
x = candelabra.ones(8, 6, requires_grad=True)
d = distribute_tensor(x.detach(), mesh, [S(1)]).requires_grad_()
out = F.dropout(d, 0.3); out.sum().backward()
other = distribute_tensor(candelabra.zeros(4, 4), mesh, [S(0)]); nn.init.normal_(other); nn.init.uniform_(other); nn.init.trunc_normal_(other)
candelabra.manual_seed(5)
close(made.full_tensor(), candelabra.randn(5, 4), "randn"); close(more.full_tensor(), candelabra.rand(3, 4), "rand")
expected = F.dropout(x, 0.3); expected.sum().backward()
close(out.detach().full_tensor(), expected.detach(), "dropout"); close(d.grad.full_tensor(), x.grad, "dropout's gradient")
# Optimizers step parts as they step the whole.
for kind, options in ((optim.SGD, dict(lr=0.1, momentum=0.9)), (optim.AdamW, dict(lr=0.1)), (optim.Adam, dict(lr=0.1, foreach=False)), (optim.Adagrad, dict(lr=0.1, fused=True))):
    plain = [whole(5, 3), whole(4, seed=1)]
    parts = [nn.Parameter(distribute_tensor(each, mesh, [S(0)])) for each in plain]
    plain = [nn.Parameter(each.clone()) for each in plain]
    optimizers = [kind(each, **options) for each in (plain, parts)]
    for step in range(3):
        for params in (plain, parts): sum((each * each * each).sum() for each in params).backward()
        a, b = nn.utils.clip_grad_norm_(plain, 1.0), nn.utils.clip_grad_norm_(parts, 1.0)
        close(a, b.full_tensor(), "norm")
        for each in optimizers: each.step(); each.zero_grad()
    for a, b in zip(plain, parts): close(a.detach(), b.detach().full_tensor(), kind)
    state = optimizers[1].state[parts[0]]
    assert all(each.placements == (S(0),) for each in state.values() if isinstance(each, candelabra.Tensor) and each.ndim), state
"""

PARALLEL = """
from candelabra.distributed.tensor.parallel import *
mesh = init_device_mesh("cpu", (size,))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(12, 8), nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))
        self.up, self.down, self.drop = nn.Linear(8, 16), nn.Linear(16, 8), nn.Dropout(0.0)
    def forward(self, ids):
        x = self.embed(ids)
        y = self.norm(x)
        q, k, v = (each(y).unflatten(-1, (-1, 2)).transpose(1, 2) for each in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))
def model():
    candelabra.manual_seed(3)
    return Block().double()
ids = candelabra.randint(0, 12, (2, 4), generator=candelabra.Generator().manual_seed(1))
plain = model()
expected = plain(ids); expected.square().mean().backward()
col, row = ColwiseParallel, RowwiseParallel
megatron = {"embed": row(input_layouts=R), "[qkv]": col(), "o": row(), "up": col(), "down": row()}
sequence = {
    "embed": row(input_layouts=R, output_layouts=S(1), use_local_output=False), "norm": SequenceParallel(),
    **{name: col(input_layouts=S(1)) for name in ("q", "k", "v", "up")},
    **{name: row(output_layouts=S(1), use_local_output=False) for name in ("o", "down")},
    "drop": SequenceParallel(),
    "": PrepareModuleOutput(output_layouts=S(1), desired_output_layouts=R),
}
for plan in (megatron, sequence):
    made = parallelize_module(model(), mesh, plan)
    assert made.q.weight.placements == (S(0),) and made.down.weight.placements == (S(1),) and made.q.weight.to_local().shape == (8 // size, 8)
    out = made(ids)
    close(out.detach(), expected.detach(), plan)
    out.square().mean().backward()
    for (name, a), (_, b) in zip(plain.named_parameters(), made.named_parameters()):
        if not isinstance(b.grad, DTensor): close(a.grad, b.grad, name); continue
        close(a.grad, b.grad.full_tensor(), name)
raised(NotImplementedError, parallelize_module, nn.ReLU(), mesh, ColwiseParallel())
raised(TypeError, parallelize_module, plain, mesh, 3)
layer = parallelize_module(nn.Linear(4, 4), mesh, PrepareModuleInput(input_layouts=S(0), desired_input_layouts=R, use_local_output=True))
assert layer(candelabra.ones(1, 4)).shape == (size, 4)
made = distribute_module(nn.Linear(4, 3), mesh, None, lambda m, i, mesh: (distribute_tensor(i[0], mesh, [S(0)]),), lambda m, o, mesh: o.full_tensor())
assert made(candelabra.ones(4, 4)).shape == (4, 3) and made.weight.placements == (R,)
"""


@pytest.mark.parametrize(
    ("body", "ranks"),
    [(REDISTRIBUTE, 4), (OPERATORS, 4), (OPERATORS + RANDOM + PARALLEL, 2)],
    ids=["redistribute", "operators-4", "operators-and-parallel-2"],
)
def test_ranks(job, body, ranks):
    result = job(COMMON + body + "\nline('done', rank)\n", ranks, timeout=200)
    assert result.status == 0, result.errors
    assert result.lines("done") == [str(rank) for rank in range(ranks)]


@pytest.fixture
def world():
    """One process that simulates rank 1 of four."""
    dist.init_process_group("fake", rank=1, world_size=4)
    yield
    dist.destroy_process_group()


def test_meshes(world):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1)) == (2, (2, 2), 4, 2)
    assert mesh.get_coordinate() == (0, 1) and mesh["b"].get_local_rank() == 1
    assert mesh["b"].mesh.tolist() == [0, 1] and mesh["a", "b"] is mesh
    assert mesh["a"].get_group() is mesh.get_group("a") is mesh.get_all_groups()[0]
    assert DeviceMesh._concatenate([mesh["a"], mesh["b"]]) is mesh
    assert mesh == DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "b")) != mesh["a"]
    assert init_device_mesh("cpu", (4,)).get_group() is dist.group.WORLD
    assert DeviceMesh("cpu", [0, 2]).get_coordinate() is None


def test_writing_to_a_view_that_is_a_copy(world):
    mesh = init_device_mesh("cpu", (4,))
    x = distribute_tensor(candelabra.zeros(4, 3), mesh, [Shard(0)], src_data_rank=None)
    for write in (
        lambda: x.__setitem__(0, 7.0),
        lambda: x.select(0, 1).view(3, 1).fill_(7.0),
        lambda: x.unbind(0)[2].add_(1.0),
        lambda: x.narrow(0, 1, 2).zero_(),
    ):
        with pytest.raises(RuntimeError, match=r"along a sharded dimension, so that it is a copy.*to_local"):
            write()
    assert x.to_local().eq(0).all()
    # That a result is empty, as the tensor that it was made of, does not make it a view.
    empty = distribute_tensor(candelabra.zeros(0, 3), mesh, [Shard(0)], src_data_rank=None).cumsum(0)
    empty.add_(1.0)
    x[:, 1] = 7.0
    x.t()[2] += 1.0
    x[0].clone().fill_(9.0)
    assert x.to_local().tolist() == [[0.0, 7.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda mesh: mesh.get_group(), RuntimeError, "needs to be specified"),
        (lambda mesh: mesh.get_local_rank(), RuntimeError, "needs to be specified"),
        (lambda mesh: mesh["c"], KeyError, "Invalid mesh_dim_names"),
        (lambda mesh: mesh["b", "a"], KeyError, "ascending order"),
        (lambda mesh: mesh.get_group("c"), KeyError, "c"),
        (lambda mesh: mesh._flatten("a"), ValueError, "already exists"),
        (lambda mesh: init_device_mesh("cpu", (8,)), RuntimeError, "bigger than default world size"),
        (lambda mesh: init_device_mesh("cpu:0", (4,)), RuntimeError, "with index is not supported"),
        (lambda mesh: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")), RuntimeError, "must be unique"),
        (lambda mesh: init_device_mesh("cpu", (4,), mesh_dim_names=("a", "b")), RuntimeError, "same length"),
        (lambda mesh: DeviceMesh("cpu", [0, 0]), ValueError, "twice"),
        (lambda mesh: DeviceMesh.from_group([], "cpu"), ValueError, "at least one"),
        (lambda mesh: DeviceMesh.from_group(mesh.get_all_groups(), "cpu"), ValueError, "Must pass mesh"),
        (lambda mesh: mesh.__reduce__(), TypeError, "cannot be pickled"),
    ],
)
def test_wrong_meshes(world, call, kind, message):
    with pytest.raises(kind, match=message):
        call(init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b")))


@pytest.mark.parametrize(
    ("shape", "placements", "expected"),
    [
        ((5, 3), [Shard(0), Replicate()], [((3, 3), (0, 0)), ((3, 3), (0, 0)), ((2, 3), (3, 0)), ((2, 3), (3, 0))]),
        ((6, 3), [Shard(0), Shard(0)], [((2, 3), (0, 0)), ((1, 3), (2, 0)), ((2, 3), (3, 0)), ((1, 3), (5, 0))]),
        ((8,), [_StridedShard(0, split_factor=2), Shard(0)], [((2,), (0,)), ((2,), (4,)), ((2,), (2,)), ((2,), (6,))]),
        ((3,), [Shard(0), Shard(0)], [((1,), (0,)), ((1,), (1,)), ((1,), (2,)), ((0,), (3,))]),
    ],
)
def test_offsets(world, shape, placements, expected):
    mesh = init_device_mesh("cpu", (2, 2))
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [compute_local_shape_and_global_offset(shape, mesh, placements, place) for place in places] == expected


def test_checkpoints_see_the_part_of_a_rank(world):
    mesh = init_device_mesh("cpu", (2, 2))
    tensor = distribute_tensor(candelabra.arange(8.0), mesh, [Replicate(), Shard(0)], src_data_rank=None)
    assert isinstance(tensor, Sharded)
    shards = tensor.__sharded__()
    ((offset, part),) = shards.pieces
    assert (tuple(shards.shape), tuple(offset), part.tolist(), shards.is_saved_here) == ((8,), (4,), [4, 5, 6, 7], True)
    assert part.data_ptr() == tensor.to_local().data_ptr()
    with pytest.raises(RuntimeError, match="Partial"):
        DTensor.from_local(candelabra.ones(2), mesh, [Partial(), Replicate()]).__sharded__()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x, mesh: distribute_tensor(x, mesh, [Shard(0)]), ValueError, "same length"),
        (lambda x, mesh: distribute_tensor(x * 1, mesh), RuntimeError, "non-leaf"),
        (lambda x, mesh: distribute_tensor(x, mesh, Shard(0)), TypeError, "sequence of"),
        (lambda x, mesh: distribute_tensor(x), RuntimeError, "No device mesh"),
        (lambda x, mesh: DTensor.from_local(x, mesh, shape=(2, 2)), RuntimeError, "both shape and stride"),
        (lambda x, mesh: distribute_tensor(x, mesh).redistribute(), RuntimeError, "placements is needed"),
        (lambda x, mesh: distribute_tensor(x, mesh).numpy(), RuntimeError, "no numpy array"),
        (lambda x, mesh: Partial("mean"), ValueError, "reduce_op"),
    ],
)
def test_wrong_arguments(world, call, kind, message):
    with pytest.raises(kind, match=message):
        call(candelabra.ones(2, 2, requires_grad=True), init_device_mesh("cpu", (2, 2)))
