"""Test names of PyTorch that do something small, or raise and say what to use."""

from __future__ import annotations

import pytest

import candelabra
import candelabra.distributed as dist
import candelabra.distributed.checkpoint as dcp
from candelabra.distributed import rendezvous
from candelabra.distributed.device_mesh import init_device_mesh
from candelabra.distributed.tensor import Replicate, Shard, distribute_tensor, experimental


@pytest.fixture
def mesh():
    """The mesh of two ranks, of which this process simulates the first."""
    dist.init_process_group("fake", rank=0, world_size=2)
    yield init_device_mesh("cpu", (2,))
    dist.destroy_process_group()


# ---- local_map


def test_a_function_of_parts(mesh):
    x = distribute_tensor(candelabra.arange(8.0).view(4, 2), mesh, [Shard(0)]).requires_grad_()

    @experimental.local_map(out_placements=([Shard(0)], [Replicate()], None), in_placements=([Shard(0)], None))
    def halves(part, number):
        return part * number, part.sum(0) * 0, "text"

    rows, zeros, text = halves(x, 3)
    assert rows.shape == (4, 2) and rows.placements == (Shard(0),) and rows.to_local().tolist() == [[0, 3], [6, 9]]
    assert zeros.placements == (Replicate(),) and zeros.shape == (2,) and text == "text"
    rows.to_local().sum().backward()
    assert x.grad.to_local().tolist() == [[3, 3], [3, 3]]
    # Plain tensors go through as they are.
    assert [type(each) for each in halves(candelabra.ones(2, 2), 2)] == [candelabra.Tensor, candelabra.Tensor, str]


def test_inputs_are_moved_where_that_is_wanted(mesh):
    x = distribute_tensor(candelabra.arange(4.0), mesh, [Replicate()])
    options = {"out_placements": [Shard(0)], "in_placements": ([Shard(0)],)}
    with pytest.raises(ValueError, match="redistribute_inputs=True"):
        experimental.local_map(lambda part: part, **options)(x)
    moved = experimental.local_map(lambda part: part + 1, **options, redistribute_inputs=True)(x)
    assert moved.to_local().tolist() == [1, 2]
    graded = experimental.local_map(lambda part: part, [Replicate()], in_grad_placements=([Replicate()],))
    assert graded(x).placements == (Replicate(),)


def test_wrong_placements(mesh):
    x = distribute_tensor(candelabra.arange(4.0), mesh, [Shard(0)])
    for call, message in (
        (lambda: experimental.local_map(lambda a: a, [Shard(0)], in_placements=())(x), "does not match the number"),
        (lambda: experimental.local_map(lambda a: a, [Shard(0)], in_placements=(None,))(x), "expects placements"),
        (
            lambda: experimental.local_map(lambda a, b: a, [Shard(0)], ([Shard(0)],) * 2)(x, 3),
            "expects None placements",
        ),
        (lambda: experimental.local_map(lambda a: a, [Shard(0)], None, (None,))(x), "expects in grad placements"),
        (lambda: experimental.local_map(lambda a: (a, a), [Shard(0)])(x), "one PlacementType be provided"),
        (lambda: experimental.local_map(lambda a: x, [Shard(0)])(x), "torch.Tensor output expected"),
        (lambda: experimental.local_map(lambda a: 3, [Shard(0)])(x), "expects None placements"),
    ):
        with pytest.raises(AssertionError, match=message):
            call()
    for call, message in (
        (lambda: experimental.context_parallel(mesh, buffers=[]), "tensor.parallel"),
        (lambda: experimental.register_sharding(None), "local_map"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            call()


# ---- others


def test_rendezvous_handlers(monkeypatch):
    monkeypatch.setattr(rendezvous, "_handlers", {})
    asked = []

    def handler(url, timeout):
        asked.append(url)
        yield dist.HashStore(), 2, 3

    dist.register_rendezvous_handler("mine", handler)
    for scheme in ("mine", "tcp"):
        with pytest.raises(RuntimeError, match=f"handler for {scheme}:// already registered"):
            dist.register_rendezvous_handler(scheme, handler)
    dist.init_process_group("fake", init_method="mine://host/path?key=1", rank=2, world_size=3)
    assert (dist.get_rank(), dist.get_world_size()) == (2, 3)
    dist.destroy_process_group()
    assert asked == ["mine://host/path?key=1&rank=2&world_size=3"]


def test_breakpoints(mesh, monkeypatch):
    """It stops in the frame of the caller, but not in the first calls of a line."""
    from candelabra.distributed import breakpoints

    stopped = []
    monkeypatch.setattr(breakpoints._Debugger, "set_trace", lambda self, frame: stopped.append(frame.f_code.co_name))
    for _ in range(3):
        dist.breakpoint(skip=2)
    assert stopped == ["test_breakpoints"]
    dist.breakpoint(rank=1)
    assert len(stopped) == 1


def test_lazy_names():
    assert dist.GradBucket(0, candelabra.ones(2), [], True).is_last()
    assert dist.BuiltinCommHookType.FP16_COMPRESS.value is candelabra.float16
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = dist.Nothing


def test_earlier_names_of_checkpoints(tmp_path):
    with pytest.warns(FutureWarning, match="use 'save' instead"):
        dcp.save_state_dict({"a": candelabra.ones(2)}, dcp.FileSystemWriter(tmp_path, serialization_format=None))
    found = {"a": candelabra.zeros(2)}
    with pytest.warns(FutureWarning, match="use 'load' instead"):
        dcp.load_state_dict(found, dcp.FileSystemReader(tmp_path))
    assert found["a"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("SavePlanner", "__sharded__"),
        ("LoadPlan", "__sharded__"),
        ("StorageWriter", "FileSystemWriter"),
        ("HuggingFaceStorageReader", "set_model_state_dict"),
    ],
)
def test_what_raises(name, way_out):
    with pytest.raises(NotImplementedError, match=way_out):
        getattr(dcp, name)()
    with pytest.raises(NotImplementedError, match="get_optimizer_state_dict"):
        dcp.load_sharded_optimizer_state_dict({}, "optimizer", None)
