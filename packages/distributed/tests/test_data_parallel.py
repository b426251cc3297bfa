"""Test DistributedDataParallel: gradients, buckets, buffers, hooks, join, and its errors."""

from __future__ import annotations

import pytest

import candelabra
import candelabra.distributed as dist
from candelabra import nn
from candelabra.distributed.data_parallel import DistributedDataParallel
from candelabra.distributed.data_parallel.buckets import assign

COMMON = """
from candelabra import nn, optim
from candelabra.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from candelabra.distributed.data_parallel import DistributedDataParallel as DDP
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=30))
rank, size = dist.get_rank(), dist.get_world_size()
def layers(): return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.unused, self.last = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(4, 2)
        self.own = nn.Linear(4, 2)
    def forward(self, x, uses_own=False):
        out = self.last(self.first(x))
        return {"out": [out + self.own(self.first(x))]} if uses_own else {"out": [out]}
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
    def forward(self, x): return self.layer(self.layer(x))
def data(step, rows=4):
    candelabra.manual_seed(step)
    return candelabra.randn(rows * size, 6)
def part(x): return x.chunk(size)[rank]
def loss(out): return (out["out"][0] if isinstance(out, dict) else out).pow(2).mean()
def same(found, expected):
    for (name, a), (_, b) in zip(found.named_parameters(), expected.named_parameters()):
        assert (a.grad is None) == (b.grad is None), (name, a.grad, b.grad)
        assert a.grad is None or candelabra.allclose(a.grad, b.grad, atol=1e-6), (name, a.grad, b.grad)
def pair(make, **options):
    candelabra.manual_seed(rank)  # the ranks start with different values
    model = make()
    ddp = DDP(model, bucket_cap_mb=0.0005, **options)
    alone = make()
    alone.load_state_dict(model.state_dict())
    return model, ddp, alone
def train(make, steps=4, **options):
    model, ddp, alone = pair(make, **options)
    optimizers = [optim.SGD(each.parameters(), lr=0.1) for each in (model, alone)]
    for step in range(steps):
        x = data(step)
        for optimizer in optimizers: optimizer.zero_grad()
        loss(ddp(part(x))).backward()
        loss(alone(x)).backward()
        same(model, alone)
        for optimizer in optimizers: optimizer.step()
    values = [None] * size
    dist.all_gather_object(values, [each.tolist() for each in model.parameters()])
    assert values[0] == values[1]  # the same bits
    return ddp
"""
GRADIENTS = """
for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"static_graph": True}):
    ddp = train(layers, **options)
assert len(ddp.reducer.buckets) == 2 and ddp.reducer.buckets[0].indices[0] > ddp.reducer.buckets[-1].indices[-1]
for options in ({"find_unused_parameters": True}, {"static_graph": True}, {"find_unused_parameters": True, "gradient_as_bucket_view": True}):
    train(Partly, **options)
train(Twice); train(Twice, static_graph=True)
# A parameter that only one rank uses gets a gradient on all.
model, ddp, alone = pair(Partly, find_unused_parameters=True)
loss(ddp(part(data(1)), uses_own=rank == 1)).backward()
assert model.unused.weight.grad is None and model.own.weight.grad is not None
grads = [None] * size; dist.all_gather_object(grads, model.own.weight.grad.tolist()); assert grads[0] == grads[1] and any(map(any, grads[0]))
# Gradients accumulate without being reduced.
model, ddp, alone = pair(layers)
for step in range(3):
    with ddp.no_sync() if step < 2 else open(os.devnull): loss(ddp(part(data(step)))).backward()
    loss(alone(data(step))).backward()
same(model, alone)
with ddp.no_sync(): loss(ddp(part(data(1)))).backward()
grads = [None] * size; dist.all_gather_object(grads, model[0].bias.grad.tolist()); assert grads[0] != grads[1]
with candelabra.no_grad(): ddp(part(data(1)))
"""
HOOKS = """
model, ddp, alone = pair(layers)
seen = []
def hook(state, bucket):
    seen.append((bucket.index(), bucket.is_last(), [tuple(each.shape) for each in bucket.gradients()] == [tuple(each.shape) for each in bucket.parameters()]))
    return hooks.allreduce_hook(None, bucket)
ddp.register_comm_hook(None, hook)
for step in range(2):
    model.zero_grad(); alone.zero_grad()
    loss(ddp(part(data(step)))).backward(); loss(alone(data(step))).backward(); same(model, alone)
count = len(ddp.reducer.buckets)
assert seen[-count:] == [(i, i == count - 1, True) for i in range(count)], seen
for each in (hooks.fp16_compress_hook, hooks.bf16_compress_hook, hooks.fp16_compress_wrapper(hooks.allreduce_hook)):
    model, ddp, alone = pair(layers)
    ddp.register_comm_hook(None, each)
    loss(ddp(part(data(0)))).backward(); loss(alone(data(0))).backward()
    for a, b in zip(model.parameters(), alone.parameters()): assert candelabra.allclose(a.grad, b.grad, atol=2e-2)
raised(TypeError, ddp.register_comm_hook, None, 3)
assert "can only be called once" in raised(RuntimeError, ddp.register_comm_hook, None, hooks.allreduce_hook)
def wrong(state, bucket: int): pass
assert "annotation should be dist.GradBucket" in raised(ValueError, pair(layers)[1].register_comm_hook, None, wrong)
# Without communication each rank has its own gradients.
from candelabra.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
model, ddp, alone = pair(layers)
ddp.register_comm_hook(None, noop_hook)
loss(ddp(part(data(0)))).backward(); loss(alone(part(data(0)))).backward(); same(model, alone)
# A mesh instead of a group, hooks with views of buckets and static graphs
from candelabra.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cpu", (size,))
for options in ({"gradient_as_bucket_view": True}, {"static_graph": True}, {"gradient_as_bucket_view": True, "static_graph": True}):
    model, ddp, alone = pair(layers, device_mesh=mesh, **options)
    ddp.register_comm_hook(None, hooks.allreduce_hook)
    for step in range(3):
        model.zero_grad(); alone.zero_grad()
        loss(ddp(part(data(step)))).backward(); loss(alone(data(step))).backward(); same(model, alone)
assert "Cannot specify both" in raised(RuntimeError, DDP, layers(), process_group=dist.group.WORLD, device_mesh=mesh)
assert "Only 1D device mesh" in raised(RuntimeError, DDP, layers(), device_mesh=init_device_mesh("cpu", (size, 1)))
# Buffers come from rank 0; a rank in evaluation copies none.
norm = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)); ddp = DDP(norm)
for step in range(2): loss(ddp(part(data(step)) + rank)).backward()
ddp(part(data(3)))
means = [None] * size; dist.all_gather_object(means, norm[1].running_mean.tolist())
norm[1].running_mean.fill_(rank); ddp.eval(); ddp(part(data(3))); assert norm[1].running_mean.tolist() == [rank] * 3
assert list(ddp.state_dict())[0] == "module.0.weight"
"""
COMPRESSION = """
from candelabra.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, batched_powerSGD_hook, powerSGD_hook
from candelabra.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from candelabra.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from candelabra.distributed.optim import PostLocalSGDOptimizer
def step_of(seed, ddp, model, alone):
    model.zero_grad(); alone.zero_grad()
    loss(ddp(part(data(seed)))).backward(); loss(alone(data(seed))).backward()
def equal_on_ranks(value):
    everyone = [None] * size; dist.all_gather_object(everyone, value); assert everyone[0] == everyone[1]
# Approximations of full rank are exact.
for options in ({}, {"batch_tensors_with_same_shape": True}, {"warm_start": False, "use_error_feedback": False}):
    model, ddp, alone = pair(lambda: nn.Sequential(*(nn.Linear(6, 6) for _ in range(3))))
    state = PowerSGDState(None, 6, start_powerSGD_iter=2, min_compression_rate=0.4, **options)
    ddp.register_comm_hook(state, powerSGD_hook)
    for seed in range(4):
        step_of(seed, ddp, model, alone)
        for a, b in zip(model.parameters(), alone.parameters()): assert candelabra.allclose(a.grad, b.grad, atol=1e-4)
    assert state.iter == 4 and state.compression_stats()[1] > 0
# What a step loses comes later: the mean of many steps approaches the exact gradient.
for hook in (powerSGD_hook, batched_powerSGD_hook):
    model, ddp, alone = pair(layers)
    ddp.register_comm_hook(PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1), hook)
    total = 0
    for step in range(42):
        step_of(0, ddp, model, alone)
        if step >= 2: total = total + model[2].weight.grad
    equal_on_ranks(model[2].weight.grad.tolist())
    exact = alone[2].weight.grad
    assert (total / 40 - exact).norm() < 0.35 * exact.norm(), (hook, (total / 40 - exact).norm() / exact.norm())
raised(ValueError, PowerSGDState, None, 1, 1)
# Ranks go on alone, and average their parameters every second step.
model, ddp, alone = pair(layers)
groups = [dist.new_group([each]) for each in range(size)]
ddp.register_comm_hook(PostLocalSGDState(None, groups[rank], start_localSGD_iter=2), post_localSGD_hook)
optimizer = PostLocalSGDOptimizer(optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(period=2, warmup_steps=3))
differ = []
for step in range(6):
    optimizer.zero_grad(); loss(ddp(part(data(step)))).backward(); optimizer.step()
    everyone = [None] * size; dist.all_gather_object(everyone, model[0].weight.tolist())
    differ.append(everyone[0] != everyone[1])
assert differ == [False, False, True, False, True, False], differ
saved = optimizer.state_dict(); assert saved["step"] == 6
optimizer.averager.step = 0; optimizer.load_state_dict(saved); assert optimizer.averager.step == 6
"""
LARGE = """
# Gradients that are reduced where they are, beside small ones and one that is missing.
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.own = nn.Linear(6, 400), nn.Linear(400, 400), nn.Linear(400, 400)
    def forward(self, x, uses_own=False):
        out = candelabra.relu(self.first(x)) @ self.last.weight
        return out + self.own(out) if uses_own else out
for options in ({"find_unused_parameters": True}, {"find_unused_parameters": True, "gradient_as_bucket_view": True}, {"static_graph": True}):
    model, ddp, alone = pair(Wide, **options)
    for step in range(3):
        model.zero_grad(); alone.zero_grad()
        loss(ddp(part(data(step)))).backward(); loss(alone(data(step))).backward(); same(model, alone)
    assert any(bucket.separate for bucket in ddp.reducer.buckets) != ("gradient_as_bucket_view" in options)
model, ddp, alone = pair(Wide, find_unused_parameters=True)
loss(ddp(part(data(1)), uses_own=rank == 1)).backward()
grads = [None] * size; dist.all_gather_object(grads, model.own.weight.grad.tolist()); assert grads[0] == grads[1] and any(map(any, grads[0]))
with ddp.join():
    for step in range(1 + rank): model.zero_grad(); loss(ddp(part(data(step)), uses_own=True)).backward()
# Half precision divides before it sums.
half = DDP(nn.Linear(600, 600, bias=False).half()); half(candelabra.full((1, 600), 600.0).half()).backward(candelabra.full((1, 600), 100.0).half())
assert half.module.weight.grad.float().eq(60000).all()
"""
JOIN = """
for options, divide in (({}, True), ({}, False), ({"gradient_as_bucket_view": True}, True)):
    model, ddp, _ = pair(lambda: nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)), **options)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    with ddp.join(divide_by_initial_world_size=divide):
        for step in range(2 + 3 * rank):
            optimizer.zero_grad()
            loss(ddp(part(data(step)))).backward()
            optimizer.step()
            steps += 1
    assert steps == 2 + 3 * rank
    values = [None] * size
    dist.all_gather_object(values, [each.tolist() for each in [*model.parameters(), *model.buffers()]])
    assert values[0] == values[1]
def early():
    with ddp.join(throw_on_early_termination=True):
        for step in range(1 + rank): optimizer.zero_grad(); loss(ddp(part(data(step)))).backward()
text = raised(RuntimeError, early)
assert "exhausted" in text
# The same for several things that communicate: the parameters are those of training by one process.
from candelabra.distributed.algorithms.join import Join
from candelabra.distributed.optim import ZeroRedundancyOptimizer
for options in ({}, {"gradient_as_bucket_view": True}):
    model, ddp, alone = pair(layers, **options)
    sharded = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1, momentum=0.9)
    plain = optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    with Join([ddp, sharded]):
        for step in range(2 + 2 * rank):
            sharded.zero_grad(); loss(ddp(part(data(step)))).backward(); sharded.step()
    for step in range(4):  # rank 0 has inputs for two steps, and zeros then
        plain.zero_grad()
        for each in range(size):
            if each or step < 2: (loss(alone(data(step).chunk(size)[each])) / size).backward()
        plain.step()
    for a, b in zip(model.parameters(), alone.parameters()): assert candelabra.allclose(a, b, atol=1e-5)
def throws():
    with Join([ddp, sharded], throw_on_early_termination=True):
        for step in range(1 + rank): sharded.zero_grad(); loss(ddp(part(data(step)))).backward(); sharded.step()
assert raised(RuntimeError, throws) == ("Detected at least one rank that exhausted inputs. Throwing across all ranks." if rank else "Rank 0 exhausted all inputs.")
raised(ValueError, Join, [])
"""
ERRORS = """
model, ddp, _ = pair(Partly)
loss(ddp(part(data(0)))).backward()
text = raised(RuntimeError, ddp, part(data(1)))
assert "Expected to have finished reduction in the prior iteration" in text
assert text.endswith(f"rank {rank}: unused.weight, unused.bias, own.weight, own.bias"), text
class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3 + rank)
text = raised(RuntimeError, DDP, Other())
assert "parameter 0 of rank 1 is layer.weight: float32 [4, 6], of rank 0 layer.weight: float32 [3, 6]" in text, text
text = raised(RuntimeError, DDP, nn.Linear(2, 2, bias=rank == 0)); assert "parameter 1 of rank 1 is no parameter, of rank 0 bias: float32 [2]" in text, text
text = raised(RuntimeError, DDP, nn.Linear(2, 2).to(candelabra.float64 if rank else candelabra.float32)); assert "float64" in text
dist.barrier()
if rank == 0: time.sleep(0.2); os.kill(os.getpid(), signal.SIGKILL)
model, ddp, _ = layers(), None, None
line("constructing", raised(dist.DistBackendError, DDP, model))
"""


@pytest.mark.parametrize(
    "body",
    [GRADIENTS, HOOKS, COMPRESSION, LARGE, JOIN],
    ids=["gradients", "hooks-and-buffers", "compression", "large", "join"],
)
def test_two_ranks(job, body):
    result = job(COMMON + body + "\nline('done', rank)\n", 2)
    assert result.status == 0, result.errors
    assert result.lines("done") == ["0", "1"]


def test_errors_on_two_ranks(job):
    result = job(COMMON + ERRORS, 2)
    (text,) = result.lines("constructing")
    assert "rank 0 (process" in text and "was killed by signal 9" in text, result.errors


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_rank_killed_in_training_is_named(job, phase):
    program = """
    model = DDP(layers())
    class Die(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if phase == "forward" and rank == 1 and step == 3: os.kill(os.getpid(), signal.SIGKILL)
            return x.clone()
        @staticmethod
        def backward(ctx, grad):
            if phase == "backward" and rank == 1 and step == 3: os.kill(os.getpid(), signal.SIGKILL)
            return grad
    phase = sys.argv[1]
    def go_on():
        global step
        for step in range(1000): loss(Die.apply(model(part(data(step))))).backward()
    text = raised(dist.DistBackendError, go_on)
    assert 3 <= step <= 4
    line("told", text)
    """
    result = job(COMMON + "\n".join(row[4:] for row in program.splitlines()), 2, arguments=(phase,))
    (text,) = result.lines("told")
    assert text.startswith("all_reduce(float32 ") and "on rank 0: rank 1 (process" in text, result.errors
    assert "was killed by signal 9; it" in text and "all_reduce(float32 " in text.split("; it")[1]


@pytest.fixture
def world():
    """One process that simulates the first of four."""
    dist.init_process_group("fake", rank=0, world_size=4)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("module", "options", "kind", "message"),
    [
        (nn.ReLU(), {}, RuntimeError, "doesn't have any parameter that requires a gradient"),
        (nn.Linear(1, 1), {"device_ids": [0, 1]}, ValueError, "contain a single element"),
        (nn.Linear(1, 1), {"dim": 1}, ValueError, "dim must be 0"),
        (nn.Linear(1, 1), {"bucket_cap_mb": 0}, ValueError, "must be positive"),
        (nn.LazyLinear(1), {}, RuntimeError, "uninitialized parameters"),
        (nn.Linear(1, 1), {"process_group": -100}, ValueError, "does not belong"),
    ],
)
def test_wrong_arguments(world, module, options, kind, message):
    with pytest.raises(kind, match=message):
        DistributedDataParallel(module, init_sync=False, **options)


def test_ignored_parameters(world):
    model = nn.Linear(2, 2)
    model._ddp_params_and_buffers_to_ignore = ["bias"]
    assert DistributedDataParallel(model, init_sync=False).reducer.names == ["weight"]


@pytest.fixture
def one_rank():
    """A world of one process, where averages are the gradients themselves."""
    dist.init_process_group("fake", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def pair(**options):
    """A wrapped module of several buckets, and a copy that is trained without."""
    module = nn.Sequential(*(nn.Linear(6, 6) for _ in range(4)))
    alone = nn.Sequential(*(nn.Linear(6, 6) for _ in range(4)))
    alone.load_state_dict(module.state_dict())
    return DistributedDataParallel(module, bucket_cap_mb=0.0003, **options), alone


OPTIONS = [{}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"static_graph": True}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("arguments", [{}, {"create_graph": True}, {"retain_graph": True}])
def test_gradients_have_the_same_bits_as_without(one_rank, options, set_to_none, arguments):
    model, alone = pair(**options)
    for step in range(3):
        x = candelabra.randn(5, 6)
        for each in (model, alone):
            each.zero_grad(set_to_none=set_to_none)
            # The input passes twice: each parameter is used twice.
            each(each(x) if step == 1 and not options else x).pow(2).mean().backward(**arguments)
        for ours, theirs in zip(model.module.parameters(), alone.parameters(), strict=True):
            assert ours.grad.equal(theirs.grad)
    with model.no_sync():
        model(x).sum().backward()
    alone(x).sum().backward()
    for ours, theirs in zip(model.module.parameters(), alone.parameters(), strict=True):
        assert ours.grad.equal(theirs.grad)


@pytest.mark.parametrize("options", OPTIONS)
def test_python_is_called_once_a_bucket(one_rank, options):
    model, _ = pair(**options)
    reducer = model.reducer
    calls = []
    on_full, on_start = reducer.on_full, reducer.on_start
    reducer.on_full = lambda number: calls.append(number) or on_full(number)
    reducer.on_start = lambda: calls.append("start") or on_start()
    for step in range(3):
        calls.clear()
        model(candelabra.ones(2, 6)).sum().backward()
        count = len(reducer.buckets)
        assert calls == ["start", *range(count)] and 1 < count < 8, step


def test_hooks_see_local_gradients_and_what_they_change_is_averaged(one_rank):
    model, alone = pair()
    seen = []
    weight, bias = model.module[0].weight, model.module[0].bias

    def double(leaf):
        seen.append("accumulated")
        leaf.grad.mul_(2)

    def clear(leaf):
        leaf.grad.zero_()

    weight.register_hook(lambda grad: seen.append("tensor") or grad * 2)
    weight.register_post_accumulate_grad_hook(double)
    bias.register_post_accumulate_grad_hook(clear)
    for each in (model, alone):
        each(candelabra.ones(2, 6)).sum().backward()
    assert seen == ["tensor", "accumulated"]
    assert weight.grad.equal(alone[0].weight.grad * 4) and bias.grad.eq(0).all()
    assert model.module[1].weight.grad.equal(alone[1].weight.grad)


def test_a_backward_pass_of_some_parameters_only(one_rank):
    model, alone = pair()
    model(candelabra.ones(2, 6)).sum().backward(inputs=list(model.parameters()))
    alone(candelabra.ones(2, 6)).sum().backward()
    for ours, theirs in zip(model.module.parameters(), alone.parameters(), strict=True):
        assert ours.grad.equal(theirs.grad)
    model(candelabra.ones(2, 6))  # all were reduced


def test_a_second_backward_pass_of_one_iteration(one_rank):
    model, alone = pair()
    x = candelabra.ones(2, 6)
    losses = model(x).sum(), alone(x).sum()
    for loss in losses:
        loss.backward(retain_graph=True)
        loss.backward()  # accumulates: the gradients were reduced
    for ours, theirs in zip(model.module.parameters(), alone.parameters(), strict=True):
        assert ours.grad.equal(theirs.grad)
    # Two losses of one forward pass that have a parameter in common, before all are there
    first = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)])
    first.forward = lambda x: (first[1](first[0](x)), first[2](first[0](x)))
    wrapped = DistributedDataParallel(first)
    left, right = wrapped(candelabra.ones(1, 2))
    left.sum().backward()
    with pytest.raises(RuntimeError, match="ready only once: the parameter 0.weight got a gradient twice"):
        right.sum().backward()


def test_a_module_that_is_wrapped_again(one_rank):
    model, alone = pair()
    model(candelabra.ones(2, 6)).sum().backward()
    model.zero_grad()
    again = DistributedDataParallel(model.module, gradient_as_bucket_view=True)
    for each in (again, alone):
        each(candelabra.ones(2, 6)).sum().backward()
    for ours, theirs in zip(model.module.parameters(), alone.parameters(), strict=True):
        assert ours.grad.equal(theirs.grad) and ours.grad._base is again.reducer.buckets[0].flat


def test_schedules_of_simulated_ranks_are_equal():
    """Buckets follow from the module alone, so that all of many ranks reduce the same."""
    schedules = set()
    for rank in range(1024):
        dist.init_process_group("fake", rank=rank, world_size=1024)
        model = DistributedDataParallel(
            nn.Sequential(*(nn.Linear(32, 32) for _ in range(6))), bucket_cap_mb=0.01, init_sync=False
        )
        schedules.add(tuple(tuple(bucket.indices) for bucket in model.reducer.buckets))
        dist.destroy_process_group()
    assert len(schedules) == 1 and len(next(iter(schedules))) > 1


def test_buckets_are_of_one_dtype():
    tensors = [
        candelabra.zeros(4),
        candelabra.zeros(4, dtype=candelabra.float64),
        candelabra.zeros(4),
        candelabra.zeros(4),
    ]
    assert assign(tensors, [3, 2, 1, 0], 32, 16) == [[3], [2, 0], [1]]


def test_pickling_is_refused(world):
    import pickle

    with pytest.raises(TypeError, match="pickle its module"):
        pickle.dumps(DistributedDataParallel(nn.Linear(1, 1), init_sync=False))
