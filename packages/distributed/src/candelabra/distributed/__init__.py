"""Training by several processes, with PyTorch's names: groups of processes and their collectives.

The collectives are MPI's on the host, and NCCL's on CUDA. ``python -m candelabra.distributed.run``
starts the processes of a job, on one machine or several. See :doc:`/distributed`.
"""

from __future__ import annotations

from typing import Any

from candelabra.version import register

__version__ = "0.1.0"
register(
    "candelabra-distributed",
    __version__,
    "candelabra-tensor-core>=0.1,<0.2",
    "candelabra-autograd>=0.1,<0.2",
    "candelabra-nn>=0.1,<0.2",
    "candelabra-optim>=0.1,<0.2",
)

from .availability import (
    Backend,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from .breakpoints import breakpoint
from .collectives.barriers import barrier, monitored_barrier
from .collectives.gathers import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_to_all,
    all_to_all_single,
    gather,
    scatter,
)
from .collectives.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .collectives.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .collectives.reductions import (
    all_reduce,
    all_reduce_coalesced,
    broadcast,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)
from .debugging import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from .device_mesh import DeviceMesh, init_device_mesh
from .environment import get_node_local_rank, is_torchelastic_launched
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .groups import (
    GroupMember,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from .process_group import ProcessGroup
from .reduce_op import ReduceOp, supports_complex
from .rendezvous import register_rendezvous_handler
from .shrinking import SHRINK_ABORT, SHRINK_DEFAULT, shrink_group
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore
from .work import Work


def __getattr__(name: str) -> Any:
    """Import what belongs to `DistributedDataParallel` when it is asked for."""
    if name == "GradBucket":
        from .data_parallel import GradBucket

        return GradBucket
    if name == "BuiltinCommHookType":
        from .data_parallel.averaging import BuiltinCommHookType

        return BuiltinCommHookType
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor

__all__ = [
    "Backend",
    "BuiltinCommHookType",
    "DebugLevel",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "SHRINK_ABORT",
    "SHRINK_DEFAULT",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "breakpoint",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "split_group",
    "supports_complex",
]
