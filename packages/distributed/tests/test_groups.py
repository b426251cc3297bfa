"""Test process groups in one process, by the engine that moves no data."""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest

import candelabra
import candelabra.distributed as dist
from candelabra.distributed.engines import registry


@pytest.fixture
def world():
    """This process is rank 2 of 6."""
    dist.init_process_group("fake", rank=2, world_size=6)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_names_that_libraries_use():
    assert dist.ReduceOp.RedOpType.SUM is dist.ReduceOp.SUM
    assert dist.default_pg_timeout == timedelta(minutes=30)


def test_before_and_after():
    assert dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.new_group):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    dist.init_process_group("fake", rank=0, world_size=1)
    assert dist.is_initialized()
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("fake", rank=0, world_size=1)
    group = dist.group.WORLD
    dist.destroy_process_group()
    assert not dist.is_initialized()
    with pytest.raises(RuntimeError, match="was destroyed"):
        group.communicator("cpu")


def test_questions(world):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.get_pg_count()) == (2, 6, "fake", 1)
    assert dist.get_backend_config() == "cpu:fake,cuda:fake"
    assert dist.get_process_group_ranks(None) == list(range(6))
    assert repr(world) == "<candelabra.distributed.ProcessGroup '0': rank 2 of 6>"
    assert world.timeout == dist.default_pg_timeout == timedelta(minutes=30)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"backend": "token ring"}, ValueError, "Invalid backend: 'token ring'"),
        ({"backend": "cpu:fake,cpu:mpi"}, ValueError, "Duplicate device type cpu"),
        ({"backend": "cpu:fake,cuda"}, ValueError, "Invalid device:backend pairing"),
        ({"rank": 3}, ValueError, "rank must be between 0 and 1"),
        ({"timeout": 3}, TypeError, "datetime.timedelta"),
        ({"store": dist.HashStore(), "init_method": "env://"}, AssertionError, "Cannot specify both"),
        ({"store": dist.HashStore(), "world_size": -1}, AssertionError, "world_size must be positive"),
        ({"store": dist.HashStore(), "rank": -1}, AssertionError, "rank must be non-negative"),
    ],
)
def test_wrong_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        dist.init_process_group(**{"backend": "fake", "rank": 0, "world_size": 2, **arguments})
    assert not dist.is_initialized()


def test_new_groups(world):
    group = dist.new_group([4, 2])
    assert (dist.get_rank(group), dist.get_process_group_ranks(group)) == (0, [2, 4])
    assert (dist.get_global_rank(group, 1), dist.get_group_rank(group, 4)) == (4, 1)
    unsorted = dist.new_group([4, 2], sort_ranks=False)
    assert (dist.get_rank(unsorted), unsorted.ranks) == (1, [4, 2])
    outside = dist.new_group([0, 1])
    assert outside == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(outside) == -1
    assert dist.new_group([0, 1], use_local_synchronization=True) == outside
    assert dist.new_group().size() == 6
    with pytest.warns(UserWarning, match="all_reduce on global rank 2"):
        assert dist.all_reduce(candelabra.ones(1), group=outside) is None
    with pytest.raises(ValueError, match="Global rank 0 is not part of group"):
        dist.get_group_rank(group, 0)
    with pytest.raises(ValueError, match="Group rank 2 is not part"):
        dist.get_global_rank(group, 2)
    for ranks in ([6], [-1]):
        with pytest.raises(ValueError, match="should be within the world_size"):
            dist.new_group(ranks)
    with pytest.raises(ValueError, match="must be different"):
        dist.new_group([1, 1])
    dist.destroy_process_group(group)
    with pytest.raises(ValueError, match="Invalid process group"):
        dist.destroy_process_group(group)
    dist.destroy_process_group(outside)


def test_numbers_agree_between_ranks():
    """Ranks that are in different groups still give the same number to a common one."""
    numbers = []
    for rank in range(4):
        dist.init_process_group("fake", rank=rank, world_size=4)
        dist.new_group([0, 1])
        dist.split_group(split_ranks=[[0, 2], [1, 3]])
        numbers.append(dist.new_group().number)
        numbers.append(dist.new_group([0, 1, 2, 3], use_local_synchronization=True).number)
        dist.destroy_process_group()
    assert len(set(numbers[0::2])) == len(set(numbers[1::2])) == 1


def test_split_and_subgroups(world):
    half = dist.split_group(split_ranks=[[0, 2, 4], [1, 3, 5]])
    assert half.ranks == [0, 2, 4] and half.rank() == 1
    assert dist.split_group(half, [[1, 2]]).ranks == [2, 4]
    assert dist.split_group(split_ranks=[[0, 1]]) is None
    with pytest.raises(ValueError, match="duplicate ranks"):
        dist.split_group(split_ranks=[[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="cannot be None or empty"):
        dist.split_group()
    mine, parts = dist.new_subgroups(2)
    assert mine.ranks == [2, 3] and len(parts) == 3 and parts[1] is mine
    mine, _ = dist.new_subgroups_by_enumeration([[5, 2], [0]])
    assert mine.ranks == [2, 5]
    for size, message in (
        (4, "must be divisible"),
        (0, "must be positive"),
        (7, "must not exceed"),
        (None, "is needed"),
    ):
        with pytest.raises(ValueError, match=message):
            dist.new_subgroups(size)
    with pytest.raises(ValueError, match="both subgroup"):
        dist.new_subgroups_by_enumeration([[0, 1], [1]])


def test_backends():
    assert registry.parse("NCCL") == {"cuda": "nccl"} and registry.parse("gloo") == {"cpu": "gloo"}
    assert registry.parse(None) == {"cpu": "mpi", "cuda": "nccl"}
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"
    assert dist.is_backend_available("fake") and not dist.is_backend_available("ucc")
    assert dist.is_gloo_available() == dist.is_mpi_available()
    assert not dist.is_ucc_available() and not dist.is_xccl_available()
    assert dist.get_default_backend_for_device("cpu") == "mpi"
    with pytest.raises(ValueError, match="not registered for device : opencl"):
        dist.get_default_backend_for_device("opencl")
    with pytest.raises(RuntimeError, match="already exist"):
        dist.Backend.register_backend("fake", lambda: None)


def test_gloo_is_an_alias_with_one_warning(monkeypatch):
    monkeypatch.setitem(registry.ALIASES, "gloo", "fake")
    monkeypatch.setattr(registry, "_warned", set())
    with pytest.warns(UserWarning, match="'gloo' is carried out by 'fake'"):
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    assert dist.get_backend() == "gloo"
    dist.destroy_process_group()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    dist.destroy_process_group()


def test_a_device_without_a_backend():
    dist.init_process_group("cuda:fake", rank=0, world_size=2)
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu; the group has cuda:fake"):
        dist.all_reduce(candelabra.ones(1))
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: dist.all_reduce([x]), TypeError, "Expected parameter `tensor`"),
        (lambda x: dist.all_gather(x, x), TypeError, "Expected parameter `tensor_list`"),
        (lambda x: dist.all_reduce(x, "sum"), TypeError, "op must be a ReduceOp"),
        (lambda x: dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM), NotImplementedError, "PREMUL_SUM"),
        (lambda x: dist.all_reduce(x + 0j, dist.ReduceOp.MAX), ValueError, "on complex tensors"),
        (lambda x: dist.broadcast(x), ValueError, "Must specify src or group_src"),
        (lambda x: dist.broadcast(x, 0, group_src=0), ValueError, "both group_src and src"),
        (lambda x: dist.broadcast(x, 6), ValueError, "src must be between 0 and 5"),
        (lambda x: dist.send(x, 2), ValueError, "Invalid destination rank"),
        (lambda x: dist.all_gather_into_tensor(x, x), ValueError, "output tensor size must be equal"),
        (lambda x: dist.reduce_scatter_tensor(x, x), ValueError, "input tensor must be the same size"),
        (lambda x: dist.all_gather([x], x), ValueError, "1 tensors for a group of 6"),
        (lambda x: dist.all_gather([x.long()] * 6, x), ValueError, "different dtypes"),
        (lambda x: dist.gather(x, None, 2), ValueError, "must be specified on destination rank"),
        (lambda x: dist.gather(x, [x] * 6, 0), ValueError, "must NOT be specified"),
        (lambda x: dist.scatter(x, None, 2), ValueError, "must be specified on source rank"),
        (lambda x: dist.all_to_all_single(x, x), ValueError, "does not divide equally"),
        (lambda x: dist.all_to_all_single(x, x, [1] * 6, [1] * 6), ValueError, "doesn't match total dim 0 size"),
        (lambda x: dist.batch_isend_irecv([]), ValueError, "it is empty"),
        (lambda x: dist.P2POp(print, x, 0), ValueError, "Expected ``op``"),
        (lambda x: dist.all_gather_object([None], x), ValueError, "1 places for 6 ranks"),
        (lambda x: dist.all_reduce(x, group=3), TypeError, "must be a ProcessGroup"),
    ],
)
def test_wrong_calls(world, call, kind, message):
    with pytest.raises(kind, match=message):
        call(candelabra.ones(4))


def test_debug_level(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(RuntimeError, match="must be one of OFF, INFO, and DETAIL"):
        dist.get_debug_level()
