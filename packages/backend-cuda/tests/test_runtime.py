"""Devices, streams, events, memory, graphs and failures on a GPU."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import candelabra


def test_a_tensor_goes_there_and_back(cuda):
    values = np.random.default_rng(0).normal(size=(37, 53)).astype(np.float32)
    there = candelabra.tensor(values).to(cuda)
    assert there.device == cuda and there.is_cuda
    assert np.array_equal(there.cpu().numpy(), values)
    assert np.array_equal(there.t().contiguous().cpu().numpy(), values.T)


def test_properties(cuda):
    properties = candelabra.cuda.get_device_properties()
    assert properties.major >= 8 and properties.total_memory > 2**30 and properties.warp_size == 32
    assert candelabra.cuda.get_device_capability() == (properties.major, properties.minor)
    free, total = candelabra.cuda.mem_get_info()
    assert 0 < free <= total


def test_the_allocator_hands_memory_on(cuda):
    gc.collect()  # what failures before this test still hold
    candelabra.cuda.empty_cache()
    before = candelabra.cuda.memory_allocated()
    x = candelabra.empty(1 << 20, device=cuda)
    assert candelabra.cuda.memory_allocated() == before + 4 * (1 << 20)
    address = x.data_ptr()
    del x
    gc.collect()
    assert candelabra.cuda.memory_allocated() == before
    assert candelabra.empty(1 << 20, device=cuda).data_ptr() == address
    assert candelabra.cuda.memory_reserved() >= 4 * (1 << 20)
    assert (
        sum(segment["total_size"] for segment in candelabra.cuda.memory_snapshot()) == candelabra.cuda.memory_reserved()
    )


def test_out_of_memory_says_what_is_held_and_goes_on(cuda):
    candelabra.cuda.empty_cache()
    candelabra.cuda.set_per_process_memory_fraction(0.1)
    try:
        total = candelabra.cuda.mem_get_info()[1]
        with pytest.raises(candelabra.OutOfMemoryError, match="Tried to allocate .* is allocated by Candelabra"):
            candelabra.empty(total // 4, device=cuda)
        assert candelabra.ones(10, device=cuda).sum().item() == 10
    finally:
        candelabra.cuda.set_per_process_memory_fraction(1.0)


def test_streams_and_events(cuda):
    side = candelabra.cuda.Stream()
    start, end = candelabra.cuda.Event(enable_timing=True), candelabra.cuda.Event(enable_timing=True)
    x = candelabra.ones(1 << 22, device=cuda)
    side.wait_stream(candelabra.cuda.current_stream())
    with candelabra.cuda.stream(side):
        start.record()
        y = x + 1
        for _ in range(20):
            y = y * 1.0
        end.record()
    x.record_stream(side)
    candelabra.cuda.current_stream().wait_stream(side)
    assert float(y.sum().item()) == 2.0 * (1 << 22)
    assert start.elapsed_time(end) > 0 and side.query()


def test_pinned_memory_is_copied_later(cuda):
    host = candelabra.arange(1 << 20, dtype=candelabra.float32).pin_memory()
    assert host.is_pinned()
    there = host.to(cuda, non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    candelabra.cuda.synchronize()
    assert back.is_pinned() and np.array_equal(back.numpy(), host.numpy())


def test_a_graph_replays(cuda):
    x = candelabra.zeros(1000, device=cuda)
    graph = candelabra.cuda.CUDAGraph()
    with candelabra.cuda.graph(graph):
        y = (x + 1) * 2
    for value in (0.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.cpu().numpy().tolist() == [(value + 1) * 2] * 1000


def test_a_sum_is_the_same_every_time(cuda):
    x = candelabra.tensor(np.random.default_rng(1).normal(size=1 << 22).astype(np.float32)).to(cuda)
    sums = {x.sum().item() for _ in range(5)}
    assert len(sums) == 1
    assert abs(sums.pop() - float(x.cpu().numpy().astype(np.float64).sum())) < 1e-2


def test_blocking_launches(cuda):
    code = """
        import candelabra
        x = candelabra.ones(100, device="cuda")
        assert (x + 1).sum().item() == 200
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, env={**os.environ, "CANDELABRA_LAUNCH_BLOCKING": "1"}
    )


def test_expandable_segments(cuda):
    code = """
        import candelabra
        tensors = [candelabra.ones(1 << 18, device="cuda") for _ in range(40)]
        assert sum(t.sum().item() for t in tensors) == 40 * (1 << 18)
        assert any(segment["is_expandable"] for segment in candelabra.cuda.memory_snapshot())
        del tensors[10:]
        candelabra.cuda.empty_cache()
        assert sum(t.sum().item() for t in tensors) == 10 * (1 << 18)
    """
    environment = {**os.environ, "CANDELABRA_CUDA_ALLOC_CONF": "expandable_segments:True"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env=environment)


def test_a_forked_child_is_told(cuda):
    code = """
        import os, candelabra
        x = candelabra.ones(3, device="cuda")
        child = os.fork()
        if child == 0:
            try:
                x + 1
            except RuntimeError as error:
                os._exit(0 if "forked subprocess" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_tensors_of_two_devices_are_refused(cuda):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        candelabra.ones(3, device=cuda) + candelabra.ones(3)
