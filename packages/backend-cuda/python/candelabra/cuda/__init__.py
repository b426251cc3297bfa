"""NVIDIA GPUs under PyTorch's names: a thin layer over `candelabra.accelerator` for the device type
``cuda``.

Without the backend, a driver or a GPU, `is_available` is False and `device_count` 0; whatever needs
a device raises an error that says what is missing. Importing this module loads nothing.
"""

from __future__ import annotations

import sys

from candelabra import _C
from candelabra._C import AcceleratorError, OutOfMemoryError
from candelabra.accelerator import StreamContext

from . import amp, comm, nccl, nvtx, profiler, random
from .devices import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    get_sync_debug_mode,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    resolve,
    set_device,
    set_sync_debug_mode,
    synchronize,
)
from .graphed_callables import make_graphed_callables
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing
from .memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .monitoring import (
    clock_rate,
    device_memory_used,
    list_gpu_processes,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalStream,
    Stream,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from .unavailable import UNAVAILABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Generator

__all__ = [
    "AcceleratorError", "CUDAGraph", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream", "StreamContext",
    "amp", "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "can_device_access_peer", "clock_rate", "comm", "current_device", "current_stream", "default_generators",
    "default_stream", "device", "device_count", "device_memory_used", "device_of", "empty_cache", "get_allocator_backend",
    "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "get_gencode_flags",
    "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all", "get_stream_from_external",
    "get_sync_debug_mode", "graph", "graph_pool_handle", "has_half", "has_magma", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_initialized", "is_tf32_supported", "list_gpu_processes", "make_graphed_callables",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict",
    "memory_summary", "memory_usage", "nccl", "nvtx", "power_draw", "profiler", "random",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "set_sync_debug_mode", "stream",
    "synchronize", "temperature", "use_mem_pool", "utilization",
]  # fmt: skip


#: Every GPU that the backend supports has float16; linear algebra is cuSOLVER's, never MAGMA's.
has_half = True
has_magma = False


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        generators: tuple[Generator, ...] = tuple(
            _C.default_generator(resolve(index)) for index in range(device_count())
        )
        return generators
    reason = f": {UNAVAILABLE[name]}" if name in UNAVAILABLE else ""
    raise AttributeError(
        f"module 'candelabra.cuda' has no attribute '{name}'{reason}", name=name, obj=sys.modules[__name__]
    )
