"""NVIDIA GPUs under PyTorch's names: a thin layer over `candelabra.accelerator` for the device type ``cuda``.

Without the backend, a driver or a GPU, `is_available` is False and `device_count` 0; whatever needs a device raises an error that
says what is missing. Importing this module loads nothing.
"""

from __future__ import annotations

import sys

from candelabra import _C
from candelabra._C import OutOfMemoryError
from candelabra.accelerator import StreamContext

from . import amp, nvtx
from .devices import (
    TYPE,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    resolve,
    set_device,
    synchronize,
)
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .streams import Event, ExternalStream, Stream, current_stream, default_stream, set_stream, stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from candelabra._C import Generator, Tensor
    from candelabra.types import Device

__all__ = [
    "CUDAGraph", "Event", "ExternalStream", "OutOfMemoryError", "Stream", "StreamContext", "amp", "can_device_access_peer",
    "current_device", "current_stream", "default_generators", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "graph",
    "graph_pool_handle", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "nvtx",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip


# ---- random numbers


def manual_seed(seed: int) -> None:
    """Start the random numbers of the current GPU from a seed; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.manual_seed(0)
    """
    if is_available():
        _C.default_generator(resolve()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all GPUs from a seed; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.manual_seed_all(0)
    """
    for index in range(device_count()):
        _C.default_generator(resolve(index)).manual_seed(int(seed))


def seed() -> None:
    """Start the random numbers of the current GPU from a seed that the system picks."""
    if is_available():
        _C.default_generator(resolve()).seed()


def seed_all() -> None:
    """Start the random numbers of all GPUs from one seed that the system picks."""
    if is_available():
        manual_seed_all(_C.default_generator(resolve(0)).seed())


def initial_seed() -> int:
    """Return the seed that the random numbers of the current GPU began with."""
    return _C.default_generator(resolve()).initial_seed()


def get_rng_state(device: Device | int = TYPE) -> Tensor:
    """Return the state of the random numbers of a GPU, as a uint8 tensor."""
    return _C.default_generator(resolve(device)).get_state()


def get_rng_state_all() -> list[Tensor]:
    """Return the states of the random numbers of all GPUs."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Device | int = TYPE) -> None:
    """Go on with the random numbers of a GPU from a state."""
    _C.default_generator(resolve(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Go on with the random numbers of all GPUs from their states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        generators: tuple[Generator, ...] = tuple(_C.default_generator(resolve(index)) for index in range(device_count()))
        return generators
    if name in ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor",
                "LongTensor", "BoolTensor"):  # fmt: skip
        raise AttributeError(
            f"module 'candelabra.cuda' has no attribute '{name}': use candelabra.tensor(..., device='cuda')",
            name=name,
            obj=sys.modules[__name__],
        )
    raise AttributeError(f"module 'candelabra.cuda' has no attribute '{name}'", name=name, obj=sys.modules[__name__])
