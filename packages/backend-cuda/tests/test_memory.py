"""Test memory of a GPU and pinned host memory: the cache, pools, behaviour before memory runs out,
limits.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import candelabra

MEBIBYTE = 1 << 20


def run(code: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import candelabra\n" + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_blocks_are_cut_and_joined(cuda):
    gc.collect()
    candelabra.cuda.empty_cache()
    pool = candelabra.cuda.MemPool()
    with candelabra.cuda.use_mem_pool(pool):
        parts = [candelabra.empty(2 * MEBIBYTE, dtype=candelabra.uint8, device=cuda) for _ in range(4)]
    (segment,) = pool.snapshot()
    assert segment["total_size"] == 20 * MEBIBYTE and segment["segment_type"] == "large"
    assert [block["size"] for block in segment["blocks"]] == [2 * MEBIBYTE] * 4 + [12 * MEBIBYTE]
    assert [block["state"] for block in segment["blocks"]] == ["active_allocated"] * 4 + ["inactive"]
    address = parts[1].data_ptr()
    del parts[1:3]
    blocks = pool.snapshot()[0]["blocks"]
    assert [block["size"] // MEBIBYTE for block in blocks] == [2, 4, 2, 12]
    with candelabra.cuda.use_mem_pool(pool):
        assert candelabra.empty(4 * MEBIBYTE, dtype=candelabra.uint8, device=cuda).data_ptr() == address


def test_memory_of_a_stream_goes_to_that_stream(cuda):
    side = candelabra.cuda.Stream()
    size = 3 * MEBIBYTE
    with candelabra.cuda.stream(side):
        x = candelabra.empty(size, device=cuda)
        address = x.data_ptr()
        del x
    other = candelabra.empty(size, device=cuda)
    assert other.data_ptr() != address
    with candelabra.cuda.stream(side):
        assert candelabra.empty(size, device=cuda).data_ptr() == address


def test_the_cache_is_given_back_before_memory_runs_out(emulated):
    run(
        """
        stats = candelabra.cuda.memory_stats
        held = candelabra.empty(150 << 20, dtype=candelabra.uint8, device="cuda")
        del held
        assert candelabra.cuda.memory_reserved() == 150 << 20
        x = candelabra.empty(200 << 20, dtype=candelabra.uint8, device="cuda")
        assert stats()["num_alloc_retries"] == 1 and stats()["num_ooms"] == 0
        assert candelabra.cuda.memory_reserved() == 200 << 20
        try:
            candelabra.empty(200 << 20, dtype=candelabra.uint8, device="cuda")
        except candelabra.OutOfMemoryError as error:
            assert "Tried to allocate 200.00 MiB" in str(error) and "200.00 MiB is allocated by Candelabra" in str(error)
        else:
            raise AssertionError
        assert stats()["num_ooms"] == 1 and (x[:5].zero_() + 1).tolist() == [1] * 5
        """,
        CANDELABRA_EMULATION_MEMORY="256",
    )


def test_a_part_of_the_memory(cuda):
    assert candelabra.cuda.get_per_process_memory_fraction() == 1.0
    candelabra.cuda.set_per_process_memory_fraction(0.25)
    try:
        assert abs(candelabra.cuda.get_per_process_memory_fraction() - 0.25) < 1e-6
        assert candelabra.cuda.get_per_process_memory_fraction("cuda:0") < 0.26
        with pytest.raises(candelabra.OutOfMemoryError, match="set_per_process_memory_fraction"):
            candelabra.empty(candelabra.cuda.mem_get_info()[1] // 2, dtype=candelabra.uint8, device=cuda)
    finally:
        candelabra.cuda.set_per_process_memory_fraction(1.0)
    for wrong, kind in ((1, TypeError), (1.5, ValueError), (-0.1, ValueError)):
        with pytest.raises(kind, match="fraction"):
            candelabra.cuda.set_per_process_memory_fraction(wrong)


def test_figures(cuda):
    candelabra.cuda.reset_peak_memory_stats()
    candelabra.cuda.reset_accumulated_memory_stats()
    before = candelabra.cuda.memory_allocated()
    x = candelabra.empty(MEBIBYTE, dtype=candelabra.uint8, device=cuda)
    y = candelabra.empty(1000, dtype=candelabra.uint8, device=cuda)
    del x
    stats, nested = candelabra.cuda.memory_stats(), candelabra.cuda.memory_stats_as_nested_dict()
    assert stats["allocated_bytes.all.current"] == before + 1024 == nested["allocated_bytes"]["all"]["current"]
    assert stats["allocated_bytes.all.peak"] == before + MEBIBYTE + 1024 == candelabra.cuda.max_memory_allocated()
    assert stats["allocation.all.allocated"] == 2 and stats["allocation.all.freed"] == 1
    assert stats["requested_bytes.all.allocated"] == MEBIBYTE + 1000
    assert nested["num_ooms"] == stats["num_ooms"] == 0
    assert (
        "Allocated memory" in candelabra.cuda.memory_summary()
        and "out of memory: 0" in candelabra.cuda.memory_summary()
    )
    for name, wanted in (
        ("memory_cached", candelabra.cuda.memory_reserved()),
        ("max_memory_cached", candelabra.cuda.max_memory_reserved()),
    ):
        with pytest.warns(FutureWarning, match="renamed"):
            assert getattr(candelabra.cuda, name)() == wanted
    for name in ("reset_max_memory_allocated", "reset_max_memory_cached"):
        with pytest.warns(FutureWarning, match="reset_peak_memory_stats"):
            getattr(candelabra.cuda, name)()
    assert candelabra.cuda.max_memory_allocated() == before + 1024
    del y


def test_pools(cuda):
    pool, other = candelabra.cuda.MemPool(), candelabra.cuda.MemPool()
    assert pool.id != other.id and pool.use_count() == 1 and pool.allocator is None
    made: dict[str, candelabra.Tensor] = {}
    with candelabra.cuda.use_mem_pool(pool):
        made["inside"] = candelabra.ones(100, device=cuda)
        assert pool.use_count() == 2
        with candelabra.cuda.use_mem_pool(other):
            made["nested"] = candelabra.ones(100, device=cuda)
        with candelabra.cuda.stream(candelabra.cuda.Stream()):
            made["stream"] = candelabra.ones(100, device=cuda)
        thread = threading.Thread(target=lambda: made.update(thread=candelabra.ones(100, device=cuda)))
        thread.start()
        thread.join()
    made["after"] = candelabra.ones(100, device=cuda)
    candelabra.cuda.synchronize()

    def holds(which: candelabra.cuda.MemPool, tensor: candelabra.Tensor) -> bool:
        ends = [(segment["address"], segment["address"] + segment["total_size"]) for segment in which.snapshot()]
        return any(begin <= tensor.data_ptr() < end for begin, end in ends)

    assert {name: (holds(pool, x), holds(other, x)) for name, x in made.items()} == {
        "inside": (True, False), "nested": (False, True), "stream": (True, False), "thread": (False, False), "after": (False, False),
    }  # fmt: skip
    assert all(x.tolist() == [1] * 100 for x in made.values())
    reserved = candelabra.cuda.memory_reserved()
    del pool, other
    made.clear()
    gc.collect()
    candelabra.cuda.empty_cache()
    assert candelabra.cuda.memory_reserved() < reserved


def test_a_pool_serves_graphs(cuda):
    pool = candelabra.cuda.MemPool()
    x = candelabra.zeros(1000, device=cuda)
    recorded = candelabra.cuda.CUDAGraph()
    with candelabra.cuda.graph(recorded, pool=pool.id):
        y = x + 1
    assert recorded.pool() == pool.id and len(pool.snapshot()) >= 1
    recorded.replay()
    assert y.tolist() == [1] * 1000
    with pytest.raises(NotImplementedError, match="use_on_oom"):
        candelabra.cuda.MemPool(use_on_oom=True)


def test_memory_without_tensors(cuda):
    before = candelabra.cuda.memory_allocated()
    side = candelabra.cuda.Stream()
    for stream in (None, side, side.cuda_stream):
        address = candelabra.cuda.caching_allocator_alloc(4096, stream=stream)
        assert address and candelabra.cuda.memory_allocated() == before + 4096
        candelabra.cuda.caching_allocator_delete(address)
        assert candelabra.cuda.memory_allocated() == before
    with pytest.raises(TypeError, match="Invalid type for stream"):
        candelabra.cuda.caching_allocator_alloc(16, stream="side")  # type: ignore[arg-type]
    assert candelabra.cuda.get_allocator_backend() == "native"


def test_without_a_cache(cuda):
    gc.collect()
    candelabra.cuda.empty_cache()
    kept = candelabra.ones(10, device=cuda)
    reserved = candelabra.cuda.memory_reserved()
    with candelabra.cuda.caching_allocator_disabled():
        x = candelabra.ones(5 * MEBIBYTE, device=cuda)
        assert candelabra.cuda.memory_reserved() == reserved + 20 * MEBIBYTE
        del x
        assert candelabra.cuda.memory_reserved() == reserved
    y = candelabra.ones(5 * MEBIBYTE, device=cuda)
    del y
    assert candelabra.cuda.memory_reserved() > reserved
    assert kept.tolist() == [1] * 10


def test_pinned_memory_has_a_cache_of_its_own(cuda):
    gc.collect()
    candelabra.accelerator.empty_host_cache("cuda")
    candelabra.cuda.reset_peak_host_memory_stats()
    candelabra.cuda.reset_accumulated_host_memory_stats()
    stats = candelabra.cuda.host_memory_stats
    before = stats()
    host = candelabra.ones(10000).pin_memory()
    address = host.data_ptr()
    assert host.is_pinned() and stats()["active_bytes.current"] == before["active_bytes.current"] + 65536
    assert stats()["num_host_alloc"] == 1 and stats()["allocations.current"] == before["allocations.current"] + 1
    there = host.to(cuda, non_blocking=True)
    del host
    candelabra.cuda.synchronize()
    again = candelabra.empty(12000, pin_memory=True)
    assert again.data_ptr() == address, "handed on"
    assert stats()["num_host_alloc"] == 1 and stats()["active_requests.allocated"] == 2
    assert there.sum().item() == 10000
    del again
    assert (
        stats()["active_requests.current"] == before["active_requests.current"] and stats()["active_requests.peak"] >= 1
    )
    assert (
        candelabra.cuda.host_memory_stats_as_nested_dict()["allocated_bytes"]["current"]
        == stats()["allocated_bytes.current"]
    )
    candelabra.accelerator.empty_host_cache("cuda")
    assert stats()["num_host_free"] == 1 and stats()["allocated_bytes.current"] == before["allocated_bytes.current"]


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: candelabra.empty(3, 2, **options),
        lambda **options: candelabra.zeros(3, 2, **options),
        lambda **options: candelabra.ones((3, 2), **options),
        lambda **options: candelabra.full((3, 2), 7, **options),
        lambda **options: candelabra.eye(3, **options),
        lambda **options: candelabra.arange(5, **options),
        lambda **options: candelabra.linspace(0, 1, 5, **options),
        lambda **options: candelabra.logspace(0, 1, 5, **options),
        lambda **options: candelabra.randn(3, 2, **options),
        lambda **options: candelabra.rand(3, 2, **options),
        lambda **options: candelabra.randint(0, 5, (3,), **options),
        lambda **options: candelabra.randperm(9, **options),
        lambda **options: candelabra.tensor([1.0, 2.0], **options),
        lambda **options: candelabra.scalar_tensor(2.0, **options),
        lambda **options: candelabra.zeros_like(candelabra.ones(2, 3).t(), **options),
        lambda **options: candelabra.ones(2).new_full((2, 2), 3, **options),
        lambda **options: candelabra.ones(2).new_tensor([1, 2], **options),
        lambda **options: candelabra.empty_strided((2, 3), (1, 2), **options),
    ],
)
def test_factories_pin(cuda, make):
    candelabra.manual_seed(0)
    pinned = make(pin_memory=True)
    candelabra.manual_seed(0)
    plain = make()
    assert pinned.is_pinned() and not plain.is_pinned() and pinned.device.type == "cpu"
    assert (pinned.dtype, pinned.shape, pinned.stride()) == (plain.dtype, plain.shape, plain.stride())


def test_what_pinning_keeps_and_refuses(cuda):
    numbers = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    last = candelabra.tensor(numbers).contiguous(memory_format=candelabra.channels_last)
    pinned = last.pin_memory()
    assert pinned.stride() == last.stride() and pinned.is_pinned() and pinned.pin_memory() is pinned
    np.testing.assert_array_equal(pinned.numpy(), numbers)
    assert candelabra.arange(3.0).expand(4, 3).pin_memory().tolist() == [[0, 1, 2]] * 4
    assert candelabra.zeros(2, 0, pin_memory=True).shape == (2, 0)
    assert candelabra.ones(2, pin_memory=True, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        candelabra.zeros(2, device=cuda, pin_memory=True)


def test_pinned_memory_waits_for_the_device(emulated):
    # The copy is still queued when the tensor is destroyed: its memory must not be reused.
    run(
        """
        host = candelabra.ones(10000).pin_memory()
        address = host.data_ptr()
        there = host.to("cuda", non_blocking=True)
        del host
        other = candelabra.empty(10000, pin_memory=True)
        assert other.data_ptr() != address
        other.fill_(5)
        assert there.sum().item() == 10000
        """,
        CANDELABRA_EMULATION_DEFERRED="1",
    )
