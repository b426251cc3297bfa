"""Test the caching allocator: alignment, reuse, statistics, limits, and requests that fail."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from harness import OK, OUT_OF_MEMORY, Allocation_, Statistics_, backend


def allocate(size: int) -> int:
    request = Allocation_(size=ctypes.sizeof(Allocation_), bytes=size)
    status = backend().table.allocate(0, ctypes.byref(request))
    if status != OK:
        raise MemoryError(status, backend().table.last_error().decode())
    assert request.address is not None
    return request.address


def deallocate(address: int, size: int) -> None:
    backend().table.deallocate(0, address, size)


def statistics() -> Statistics_:
    result = Statistics_(ctypes.sizeof(Statistics_))
    assert backend().table.memory_statistics(0, ctypes.byref(result)) == OK
    return result


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 1025, 4097, 40_000, 1 << 20, (1 << 21) + 1, 5_000_000])
def test_blocks_are_aligned_apart_and_reused(size: int) -> None:
    blocks = [allocate(size) for _ in range(20)]
    assert all(block % 64 == 0 for block in blocks)
    ordered = sorted(blocks)
    assert all(b - a >= size for a, b in itertools.pairwise(ordered))
    for block in blocks:  # every byte is writable
        ctypes.memset(block, 0xAB, size)
    for block in blocks:
        deallocate(block, size)
    again = allocate(size)
    assert again in blocks
    deallocate(again, size)
    backend().table.empty_cache(0)


def test_every_size_class_holds_what_was_asked() -> None:
    sizes = sorted({int(1.07**k) + offset for k in range(1, 230) for offset in (0, 1)})
    blocks = [(allocate(size), size) for size in sizes]
    spans = sorted((address, address + size) for address, size in blocks)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    for block in blocks:
        deallocate(*block)


def test_statistics() -> None:
    table = backend().table
    table.empty_cache(0)
    before = statistics()
    table.reset_peak_statistics(0)
    blocks = [allocate(1 << 20) for _ in range(3)]
    during = statistics()
    assert during.allocated - before.allocated == 3 << 20
    assert during.allocated_peak >= during.allocated
    assert during.reserved >= during.allocated - before.allocated
    assert during.allocation_count - before.allocation_count == 3
    for block in blocks:
        deallocate(block, 1 << 20)
    deallocate(allocate(1 << 20), 1 << 20)
    after = statistics()
    assert after.allocated == before.allocated
    assert after.cache_hit_count - during.cache_hit_count == 1
    assert after.reserved == during.reserved
    table.empty_cache(0)
    assert statistics().reserved <= during.reserved - (3 << 20)
    table.reset_peak_statistics(0)
    assert statistics().allocated_peak == after.allocated


def test_a_free_block_serves_a_request_for_somewhat_less() -> None:
    table = backend().table
    table.empty_cache(0)
    large, less = 9 << 20, 8 << 20
    block = allocate(large)
    held = statistics().reserved
    deallocate(block, large)
    assert allocate(less) == block
    assert statistics().reserved == held
    deallocate(block, less)
    # The block keeps its size. It does not serve requests of less than two thirds of it.
    assert allocate(large) == block
    deallocate(block, large)
    small = allocate(4 << 20)
    assert small != block
    deallocate(small, 4 << 20)
    table.empty_cache(0)
    assert statistics().reserved <= held - large


@pytest.mark.parametrize("size", [2**63 - 1, 2**64 - 1, 2**50, 2**46])
def test_absurd_requests(size: int) -> None:
    request = Allocation_(size=ctypes.sizeof(Allocation_), bytes=size)
    assert backend().table.allocate(0, ctypes.byref(request)) == OUT_OF_MEMORY
    message = backend().table.last_error().decode()
    assert f"you tried to allocate {size} bytes" in message
    assert "are in use by tensors" in message


def test_limit() -> None:
    table = backend().table
    in_use = statistics().allocated
    assert table.set_memory_limit(0, in_use + (1 << 20)) == OK
    try:
        with pytest.raises(MemoryError, match="the limit for this process is"):
            allocate(2 << 20)
        deallocate(allocate(1000), 1000)
    finally:
        assert table.set_memory_limit(0, -1) == OK
    deallocate(allocate(2 << 20), 2 << 20)
    assert statistics().allocated == in_use


def run(code: str, **environment: str) -> str:
    prelude = f"import sys; sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[:2]]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.skipif("CANDELABRA_SANITIZED" in os.environ, reason="AddressSanitizer reserves terabytes of address space")
def test_out_of_address_space_empties_the_cache_and_then_fails_politely() -> None:
    out = run("""
import resource
from test_allocator import *
deallocate(allocate(1), 1)  # the library is loaded before its memory is counted
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20), used + (600 << 20)))
blocks = [allocate(100 << 20) for _ in range(4)]
for block in blocks: deallocate(block, 100 << 20)
big = allocate(450 << 20)  # fits only when what is cached is given back
deallocate(big, 450 << 20)
try:
    allocate(2 << 30)
except MemoryError as error:
    print("refused", error.args[0])
print(statistics().allocated)
""")
    assert out.split() == ["refused", str(OUT_OF_MEMORY), "0"]


def test_bound_of_the_cache() -> None:
    out = run(
        """
from test_allocator import *
blocks = [allocate(16 << 20) for _ in range(8)]
for block in blocks: deallocate(block, 16 << 20)
print(statistics().reserved <= (64 << 20))
""",
        CANDELABRA_CPU_CACHE_BYTES=str(64 << 20),
    )
    assert out.split() == ["True"]
    out = run(
        """
from test_allocator import *
for size in (100, 100_000, 10_000_000):
    deallocate(allocate(size), size)
print(statistics().reserved)
""",
        CANDELABRA_CPU_CACHE_BYTES="0",
    )
    assert out.split() == ["0"]


@pytest.mark.parametrize("variable", ["CANDELABRA_CPU_CACHE_BYTES", "CANDELABRA_CPU_PACKED_WEIGHTS"])
@pytest.mark.parametrize("text", ["", "1GB", "-1", "1e9", " 5", "99999999999999999999"])
def test_a_bound_that_is_no_number_of_bytes_is_refused(variable: str, text: str) -> None:
    failed = subprocess.run(
        [sys.executable, "-c", "import candelabra; candelabra.zeros(2)"],
        env=os.environ | {variable: text}, capture_output=True, text=True,
    )  # fmt: skip
    assert failed.returncode == 1
    assert (
        f'the environment variable {variable} must be a number of bytes, such as 1073741824, but is "{text}"'
        in failed.stderr
    )


def test_changing_sizes_do_not_pile_up() -> None:
    out = run(
        """
from test_allocator import *
for size in range(20, 200):
    deallocate(allocate(size << 20), size << 20)
held = statistics()
print(held.reserved <= held.allocated_peak * 5 // 4 + (64 << 20))
"""
    )
    assert out.split() == ["True"]


def test_many_threads() -> None:
    before = statistics().allocated
    failures: list[str] = []

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        held: list[tuple[int, int]] = []
        for _ in range(3000):
            if held and generator.random() < 0.5:
                address, size = held.pop(int(generator.integers(len(held))))
                if ctypes.string_at(address, 1) != bytes([seed]) or ctypes.string_at(address + size - 1, 1) != bytes(
                    [seed]
                ):
                    failures.append(f"block of {size} bytes was given to two threads")
                deallocate(address, size)
            else:
                size = int(2 ** generator.uniform(0, 18))
                address = allocate(size)
                ctypes.memset(address, seed, 1)
                ctypes.memset(address + size - 1, seed, 1)
                held.append((address, size))
        for address, size in held:
            deallocate(address, size)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert statistics().allocated == before


def test_blocks_may_be_freed_by_another_thread() -> None:
    before = statistics().allocated
    blocks = [allocate(500) for _ in range(100)]
    thread = threading.Thread(target=lambda: [deallocate(block, 500) for block in blocks])
    thread.start()
    thread.join()
    assert statistics().allocated == before
