"""Test the results of all collectives, on three ranks."""

from __future__ import annotations

import pytest

PROGRAM = """
dist.init_process_group("cpu:reference", timeout=timedelta(seconds=30))
rank, size = dist.get_rank(), dist.get_world_size()
def full(value, *shape, dtype=candelabra.float32): return candelabra.full(shape or (2, 3), value, dtype=dtype)
def same(found, expected):
    assert candelabra.equal(found, candelabra.as_tensor(expected, dtype=found.dtype)), (found, expected)
"""
REDUCTIONS = """
for op, expected in (("SUM", 9), ("PRODUCT", 24), ("MIN", 2), ("MAX", 4), ("AVG", 3)):
    x = full(rank + 2.0)
    assert dist.all_reduce(x, getattr(dist.ReduceOp, op)) is None
    same(x, full(float(expected)))
for op, expected in (("BAND", 0), ("BOR", 7), ("BXOR", 7)):
    x = full(1 << rank, dtype=candelabra.int32)
    dist.all_reduce(x, getattr(dist.ReduceOp, op))
    same(x, full(expected, dtype=candelabra.int32))
x = full(rank + 1.0, 4, 4)
part = x.t()[:, 1:3]  # not contiguous: neighbours stay
work = dist.all_reduce(part, async_op=True)
assert isinstance(work, dist.Work) and work.wait() and work.is_completed() and work.is_success() and work.wait()
same(x[1:3], full(6.0, 2, 4)); same(x[0], full(rank + 1.0, 4)); same(x[3], full(rank + 1.0, 4))
z = candelabra.ones(2, dtype=candelabra.complex64) * (1 + 1j * rank)
dist.all_reduce(z)
assert z.tolist() == [3 + 3j, 3 + 3j]
leaf = full(1.0).requires_grad_()
dist.all_reduce(leaf)
same(leaf.detach(), full(3.0)); assert leaf.is_leaf
empty = candelabra.empty(0); dist.all_reduce(empty)
many = [full(1.0, 2), full(float(rank), 3)]
dist.all_reduce_coalesced(many); same(many[0], full(3.0, 2)); same(many[1], full(3.0, 3))
x = full(rank + 1.0)
dist.reduce(x, 1)
same(x, full(6.0 if rank == 1 else rank + 1.0))
x = full(float(rank)); dist.broadcast(x, 2); same(x, full(2.0))
y = full(float(rank), 3, 2).t(); dist.broadcast(y, group_src=1); same(y, full(1.0))
out = candelabra.empty(2); dist.reduce_scatter_tensor(out, candelabra.arange(6.0)); same(out, [6.0 * rank, 6.0 * rank + 3])
out = candelabra.empty(2); dist.reduce_scatter(out, [full(float(i), 2) for i in range(3)]); same(out, full(3.0 * rank, 2))
future = dist.all_reduce(full(1.0), async_op=True).get_future()
assert future.then(lambda done: done.value()[0].sum().item()).wait() == 18.0
"""
MOVES = """
out = candelabra.empty(6); dist.all_gather_into_tensor(out, full(float(rank), 2)); same(out, [0.0, 0, 1, 1, 2, 2])
out = candelabra.empty(3, 2); dist.all_gather_into_tensor(out, full(float(rank), 2)); same(out[2], full(2.0, 2))
outs = [candelabra.empty(3, 2).t() for _ in range(3)]
dist.all_gather(outs, full(float(rank)))
for i in range(3): same(outs[i], full(float(i)))
outs = [candelabra.empty(i + 1) for i in range(3)]  # of different shapes
work = dist.all_gather(outs, full(float(rank), rank + 1), async_op=True); work.wait()
for i in range(3): same(outs[i], full(float(i), i + 1))
lists = [[candelabra.empty(2), candelabra.empty(1)] for _ in range(3)]
dist.all_gather_coalesced(lists, [full(float(rank), 2), full(rank + 10.0, 1)])
assert [pair[1].item() for pair in lists] == [10, 11, 12]
outs = [candelabra.empty(2, 3) for _ in range(3)] if rank == 1 else None
dist.gather(full(float(rank)), outs, 1)
if outs: [same(outs[i], full(float(i))) for i in range(3)]
got = candelabra.empty(2); dist.scatter(got, [full(float(i), 2) for i in range(3)] if rank == 2 else None, 2); same(got, full(float(rank), 2))
out = candelabra.empty(3); dist.all_to_all_single(out, candelabra.arange(3.0) + 10 * rank); same(out, [rank, 10.0 + rank, 20.0 + rank])
sizes = [1, 2, 3]
send = candelabra.cat([full(float(10 * rank + to), sizes[to]) for to in range(3)])
out = candelabra.empty(3 * sizes[rank]); dist.all_to_all_single(out, send, [sizes[rank]] * 3, sizes)
same(out, candelabra.cat([full(float(10 * source + rank), sizes[rank]) for source in range(3)]))
outs = [candelabra.empty(source + 1) for source in range(3)]
dist.all_to_all(outs, [full(float(rank), rank + 1) for _ in range(3)])
for i in range(3): same(outs[i], full(float(i), i + 1))
peer, source = (rank + 1) % 3, (rank - 1) % 3
got = candelabra.empty(2); works = [dist.irecv(got, source), dist.isend(full(float(rank), 2), peer)]
for work in works: work.wait()
same(got, full(float(source), 2))
a, b = candelabra.empty(1), candelabra.empty(1)  # by tags, against the order
works = [dist.isend(full(1.0, 1), peer, tag=1), dist.isend(full(2.0, 1), peer, tag=2)]
assert dist.recv(b, source, tag=2) == source and dist.recv(a, source, tag=1) == source
for work in works: work.wait()
same(a, [1.0]); same(b, [2.0])
dist.barrier()
if rank == 0:
    got = candelabra.empty(1); froms = sorted(dist.recv(got, tag=5) for _ in range(2)); assert froms == [1, 2]
else: dist.send(full(1.0, 1), 0, tag=5)
got = candelabra.empty(4, 2).t()
ops = [dist.P2POp(dist.isend, full(float(rank), 2, 4), peer), dist.P2POp(dist.irecv, got, source)]
for work in dist.batch_isend_irecv(ops): work.wait()
same(got, full(float(source), 2, 4))
"""
OBJECTS = """
mine = {"rank": rank, "text": "x" * 10 ** rank}
found = [None] * 3; dist.all_gather_object(found, mine); assert [each["rank"] for each in found] == [0, 1, 2] and len(found[2]["text"]) == 100
found = [None] * 3 if rank == 2 else None; dist.gather_object(mine, found, 2)
assert found is None or found[1]["text"] == "x" * 10
shared = [rank, {"from": rank}, "y" * rank]; dist.broadcast_object_list(shared, 1); assert shared == [1, {"from": 1}, "y"]
out = [None]; dist.scatter_object_list(out, [["a"], ["b"], {"c": 1}] if rank == 0 else None, 0); assert out == [[["a"]], [["b"]], [{"c": 1}]][rank]
if rank == 0: dist.send_object_list([1, "two"], 2)
if rank == 2: got = [None, None]; assert dist.recv_object_list(got, 0) == 0 and got == [1, "two"]
dist.barrier(); dist.monitored_barrier(timeout=timedelta(seconds=20)); dist.barrier(timeout=timedelta(seconds=20))
part = dist.new_group([0, 2]); local = dist.new_group([rank], use_local_synchronization=True)
x = full(rank + 1.0)
if rank != 1:
    dist.all_reduce(x, group=part); same(x, full(4.0))
    dist.broadcast(x.fill_(rank), 2, part); same(x, full(2.0))
    found = [None, None]; dist.all_gather_object(found, rank, part); assert found == [0, 2]
dist.all_reduce(x.fill_(1), group=local); same(x, full(1.0))
half = dist.split_group(split_ranks=[[0], [1, 2]]); dist.all_reduce(x, group=half); same(x, full(1.0 if rank == 0 else 2.0))
dist.destroy_process_group(half)
dist.destroy_process_group()
dist.init_process_group("cpu:reference"); dist.all_reduce(x.fill_(1)); same(x, full(3.0)); dist.destroy_process_group()
"""


@pytest.mark.parametrize("body", [REDUCTIONS, MOVES, OBJECTS], ids=["reductions", "moves", "objects-and-groups"])
def test_results(job, body):
    result = job(PROGRAM + body + "\nline('done', rank)\n", 3)
    assert result.status == 0, result.errors
    assert result.lines("done") == ["0", "1", "2"]


def test_different_collectives_are_named_before_data_moves(job):
    program = """
    dist.init_process_group("cpu:reference", timeout=timedelta(seconds=20))
    x = candelabra.ones(3)
    dist.all_reduce(x)
    rank = dist.get_rank()
    def other(): dist.all_reduce(candelabra.ones(4)) if rank == 1 else dist.all_reduce(x)
    line("shape", raised(RuntimeError, other))
    def kind(): dist.broadcast(x, 0) if rank == 1 else dist.all_reduce(x)
    line("kind", raised(RuntimeError, kind))
    dist.all_reduce(x)
    assert x.tolist() == [9.0] * 3
    """
    result = job(program, 3, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert result.status == 0, result.errors
    for words in (
        "ranks 0, 2: all_reduce(float32 3) (number 2) by sum",
        "rank 1: all_reduce(float32 4) (number 2) by sum",
    ):
        assert len([text for text in result.lines("shape") if words in text]) == 3
    assert (
        len(
            [
                text
                for text in result.lines("kind")
                if "rank 1: broadcast(float32 3) (number 3) from or to rank 0" in text
            ]
        )
        == 3
    )
