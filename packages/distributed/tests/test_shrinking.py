"""Test shrink_group: the ranks that stay go on, and the others end."""

from __future__ import annotations

import pytest

import candelabra.distributed as dist

WORLD = """
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=30))
rank = dist.get_rank()
old = dist.group.WORLD
pair = dist.new_group([0, 3])
x = candelabra.ones(1) * (rank + 1); dist.all_reduce(x); assert x.item() == 10
if rank == 1:
    line("excluded", "is in the exclusion list" in raised(RuntimeError, dist.shrink_group, [1]))
    sys.exit(0)
made = dist.shrink_group([1])
assert made is dist.group.WORLD and dist.get_world_size() == 3 and dist.get_pg_count() == 1
new = dist.get_rank()
assert new == {0: 0, 2: 1, 3: 2}[rank] and dist.get_process_group_ranks(made) == [0, 1, 2]
raised(RuntimeError, dist.all_reduce, candelabra.ones(1), group=old)
x = candelabra.ones(1) * (rank + 1); dist.all_reduce(x); assert x.item() == 8
# Ranks are the new ones: as roots, in new groups, and of messages.
x = candelabra.tensor([float(new)]); dist.broadcast(x, src=2); assert x.item() == 2
last = dist.new_group([1, 2])
if new:
    x = candelabra.tensor([float(new)]); dist.all_reduce(x, group=last); assert x.item() == 3
    assert dist.get_global_rank(last, 0) == 1 and dist.get_group_rank(last, 2) == 1
    # A group that is not the world.
    if new == 2:
        alone = dist.shrink_group([0], last)
        assert alone.ranks == [2] and dist.get_rank(alone) == 0 and dist.group.WORLD is made
if new == 2: dist.send(candelabra.ones(2), dst=0)
if new == 0:
    x = candelabra.zeros(2); assert dist.recv(x) == 2 and x.tolist() == [1, 1]
dist.barrier()
# Once more, without the first rank of the job.
if new: made = dist.shrink_group([0])
if new: x = candelabra.ones(1); dist.all_reduce(x); assert x.item() == 2 and dist.get_rank() == new - 1
line("done", rank)
"""
FAILED = """
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=30))
dist.barrier()
if dist.get_rank() == 1: os.kill(os.getpid(), signal.SIGKILL)
def go_on():
    while True: dist.barrier()
raised(dist.DistBackendError, go_on)
line("told", raised(dist.DistBackendError, dist.shrink_group, [1], None, dist.SHRINK_ABORT))
"""


def test_ranks_of_a_smaller_world(job):
    result = job(WORLD, 4)
    assert result.status == 0, result.errors
    assert result.lines("done") == ["0", "2", "3"] and result.lines("excluded") == ["True"]


def test_a_failed_rank(job):
    result = job(FAILED, 3)
    for text in result.lines("told"):
        assert "was killed by signal 9" in text and "--max-restarts" in text, text
    assert len(result.lines("told")) == 2, result.errors


@pytest.fixture
def world():
    """This process is rank 2 of 6."""
    dist.init_process_group("fake", rank=2, world_size=6)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((3,), TypeError, "ranks_to_exclude must be a list, but got int"),
        (([],), ValueError, "ranks_to_exclude cannot be empty"),
        (([1], None, 7), ValueError, "Invalid shrink_flags value: 7"),
        (([1.5],), TypeError, "Element at index 0 is float: 1.5"),
        (([6],), ValueError, "Rank 6 at index 0 is out of bounds for group size 6"),
        (([1, 1],), ValueError, "Duplicate rank 1 found in ranks_to_exclude at index 1"),
        ((list(range(6)),), ValueError, "Cannot exclude all 6 ranks"),
        (([2],), RuntimeError, "Current rank 2 is in the exclusion list"),
    ],
)
def test_wrong_arguments(world, arguments, kind, message):
    with pytest.raises(kind, match=message):
        dist.shrink_group(*arguments)


def test_a_group_of_one_rank(world):
    with pytest.raises(ValueError, match="Cannot shrink a process group with size 1"):
        dist.shrink_group([0], dist.new_group([2]))
