"""``candelabra.cuda`` where candelabra-backend-cuda is not installed.

That distribution brings the package ``candelabra.cuda``, in a folder of `candelabra.__path__`.
Where it is missing, the finder of `candelabra.assembly` loads this package under that name. It
gives the answers of a machine without a GPU: `is_available` is False, and what does nothing
without a GPU does nothing. Other names of ``candelabra.cuda`` are classes and functions that raise
a `BackendError` when they are called; other modules of it are not there. The errors say what to
install.
"""

from __future__ import annotations

import sys
from copy import copy
from functools import partial

from candelabra._C import AcceleratorError, BackendError, OutOfMemoryError
from candelabra.accelerator import StreamContext

from . import amp, nvtx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

#: The distribution that brings the package.
STANDS_IN_FOR = "candelabra-backend-cuda"

#: What functions return, whatever their arguments.
_ANSWERS: dict[str, Any] = {
    "is_available": False, "is_initialized": False, "is_bf16_supported": False, "is_tf32_supported": False,
    "is_current_stream_capturing": False, "device_count": 0, "get_arch_list": [], "get_gencode_flags": "",
    "get_sync_debug_mode": 0, "get_rng_state_all": [], "get_allocator_backend": "native", "ipc_collect": None,
    **dict.fromkeys(("manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache")),
    **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), 0),
    **dict.fromkeys(("memory_cached", "max_memory_cached"), 0),
    "memory_stats": {}, "memory_stats_as_nested_dict": {}, "host_memory_stats": {},
    "host_memory_stats_as_nested_dict": {}, "memory_snapshot": [],
}  # fmt: skip
#: Functions that need a GPU.
_FUNCTIONS = (
    "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "can_device_access_peer", "clock_rate", "current_device", "current_stream", "default_stream", "device_memory_used",
    "get_device_capability", "get_device_name", "get_device_properties", "get_per_process_memory_fraction",
    "get_rng_state", "get_stream_from_external", "graph_pool_handle", "init", "initial_seed", "list_gpu_processes",
    "make_graphed_callables", "mem_get_info", "memory_summary", "memory_usage", "power_draw",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats",
    "set_per_process_memory_fraction", "set_rng_state", "set_sync_debug_mode", "synchronize", "temperature",
    "use_mem_pool", "utilization",
)  # fmt: skip
#: Classes that need a GPU: programs name them in annotations and ask for instances of them.
_CLASSES = ("CUDAGraph", "Event", "ExternalStream", "MemPool", "Stream", "graph")
#: Modules that need a GPU.
_MODULES = ("comm", "memory", "nccl", "profiler", "random")

__all__ = [
    "AcceleratorError", "OutOfMemoryError", "StreamContext", "amp", "default_generators", "device", "device_of",
    "has_half", "has_magma", "nvtx", "set_device", "set_rng_state_all", "set_stream", "stream", *_ANSWERS, *_CLASSES,
    *_FUNCTIONS,
]  # fmt: skip

has_half = True
has_magma = False
default_generators = ()


def _refuse(name: str) -> NoReturn:
    raise BackendError(
        f"candelabra.cuda.{name}: no backend for device 'cuda' is installed: pip install {STANDS_IN_FOR}"
    )


class device:
    """Changes nothing for None and negative numbers; for a GPU it raises."""

    def __init__(self, device: Any) -> None:
        if device is not None and not (isinstance(device, int) and device < 0):
            _refuse("device")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


class device_of(device):
    """Changes nothing: no tensor of this process is on a GPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(None)


def set_device(device: Any) -> None:
    """Do nothing for a negative number, and raise for a GPU."""
    if not (isinstance(device, int) and device < 0):
        _refuse("set_device")


def set_stream(stream: Any) -> None:
    """Do nothing for None, and raise for a stream of a GPU."""
    if stream is not None:
        _refuse("set_stream")


def stream(stream: Any) -> StreamContext:
    """Return a context that does nothing for None."""
    return StreamContext(stream)


def set_rng_state_all(new_states: Any) -> None:
    """Do nothing for what `get_rng_state_all` returns here, and raise for the state of a GPU."""
    for _ in new_states:
        _refuse("set_rng_state_all")


def _function(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    def function(*arguments: Any, **keywords: Any) -> Any:
        return body()

    function.__name__ = function.__qualname__ = name
    return function


def _class(name: str) -> type:
    def refuse(self: object, *arguments: Any, **keywords: Any) -> None:
        _refuse(name)

    return type(name, (), {"__module__": __name__, "__init__": refuse})


globals().update({name: _function(name, partial(copy, answer)) for name, answer in _ANSWERS.items()})
globals().update({name: _function(name, partial(_refuse, name)) for name in _FUNCTIONS})
globals().update({name: _class(name) for name in _CLASSES})


# Any: what is installed may be the package itself.
def __getattr__(name: str) -> Any:
    reason = f" without its backend: pip install {STANDS_IN_FOR}" if name in _MODULES else ""
    raise AttributeError(
        f"module 'candelabra.cuda' has no attribute '{name}'{reason}", name=name, obj=sys.modules[__name__]
    )
