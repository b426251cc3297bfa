"""The accelerator of this machine: devices, streams, events and memory under the same names for
every backend. PyTorch's module ``torch.accelerator``.

PyTorch's module ``torch.accelerator``. The accelerator is the device type of the first installed
backend that does not compute in host memory and has a device, or the one that `use` or
``CANDELABRA_ACCELERATOR`` names. A backend supports this module through its tables
(``candelabra/backend.h``, ``candelabra/accelerator.h``), without Python code of its own.
"""

from __future__ import annotations

from .devices import (
    DeviceContext,
    current_accelerator,
    current_device_idx,
    current_device_index,
    device_count,
    device_index,
    get_device_capability,
    get_device_properties,
    is_available,
    set_device_idx,
    set_device_index,
    synchronize,
    use,
)
from .devices import (
    DeviceProperties as DeviceProperties,
)
from .devices import (
    current_index as current_index,
)
from .devices import (
    resolve as resolve,
)
from .graphs import Graph
from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_memory_fraction,
)
from .memory import (
    pinned_copy as pinned_copy,
)
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

__all__ = [
    "DeviceContext", "Event", "Graph", "Stream", "StreamContext", "current_accelerator", "current_device_idx",
    "current_device_index", "current_stream", "default_stream", "device_count", "device_index", "empty_cache", "empty_host_cache",
    "get_device_capability", "get_device_properties", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_memory_fraction",
    "set_stream", "stream", "synchronize", "use",
]  # fmt: skip
