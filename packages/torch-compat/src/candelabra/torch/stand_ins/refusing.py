"""What `torch.distributed` has and Candelabra has not, or not without candelabra-distributed:
classes and functions that raise where they are used.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NoReturn

_WAY_OUT = (
    "torch.distributed is not available on Candelabra: candelabra.distributed is not installed: pip install "
    "candelabra-distributed; candelabra.communication has the collectives, and candelabra.nn.DataParallel runs a module on "
    "several devices"
)
_MISSING = (
    "this part of torch.distributed is not available on Candelabra; candelabra.distributed has the collectives, and "
    "DistributedDataParallel trains a module in several processes"
)


def is_installed() -> bool:
    """Return whether candelabra-distributed is installed."""
    return importlib.util.find_spec("candelabra.distributed") is not None


def _way_out() -> str:
    return _MISSING if is_installed() else _WAY_OUT


#: By PyTorch module: the names of its classes, and of its functions.
MODULES: dict[str, tuple[str, str]] = {
    "_C._distributed_rpc": ("PyRRef", ""),
    "distributed": (
        "Backend DeviceMesh FileStore HashStore P2POp PrefixStore ProcessGroup Store TCPStore Work",
        "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier batch_isend_irecv broadcast "
        "broadcast_object_list destroy_process_group gather gather_object get_backend get_process_group_ranks get_rank get_world_size "
        "init_device_mesh init_process_group irecv isend monitored_barrier new_group new_subgroups recv recv_object_list reduce "
        "reduce_scatter reduce_scatter_tensor scatter scatter_object_list send send_object_list",
    ),
    "distributed._functional_collectives": (
        "AsyncCollectiveTensor",
        "all_gather_tensor all_gather_tensor_autograd all_reduce all_to_all_single all_to_all_single_autograd broadcast "
        "permute_tensor reduce_scatter_tensor reduce_scatter_tensor_autograd wait_tensor",
    ),
    "distributed.algorithms._checkpoint.checkpoint_wrapper": (
        "CheckpointImpl CheckpointWrapper",
        "apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
    ),
    "distributed.algorithms.join": ("Join Joinable JoinHook", ""),
    "distributed.checkpoint": (
        "FileSystemReader FileSystemWriter StorageReader StorageWriter",
        "async_save load load_state_dict save save_state_dict",
    ),
    "distributed.checkpoint.default_planner": ("DefaultLoadPlanner DefaultSavePlanner", ""),
    "distributed.checkpoint.hf_storage": ("HuggingFaceStorageReader HuggingFaceStorageWriter", ""),
    "distributed.checkpoint._consolidate_hf_safetensors": ("", "consolidate_safetensors_files"),
    "distributed.checkpoint.optimizer": ("", "load_sharded_optimizer_state_dict"),
    "distributed.checkpoint.state_dict": (
        "StateDictOptions",
        "get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict",
    ),
    "distributed.device_mesh": ("DeviceMesh", "init_device_mesh"),
    "distributed.fsdp": (
        "BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel "
        "LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig "
        "OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictConfig StateDictSettings "
        "StateDictType UnshardHandle",
        "fully_shard register_fsdp_forward_method",
    ),
    "distributed.fsdp.sharded_grad_scaler": ("ShardedGradScaler", ""),
    "distributed.fsdp.wrap": (
        "CustomPolicy ModuleWrapPolicy",
        "always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap",
    ),
    "distributed.nn": ("", "all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter"),
    "distributed.optim": ("DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer", "as_functional_optim"),
    "distributed.pipelining": ("ScheduleGPipe SplitPoint", "pipeline"),
    "distributed.rpc": (
        "BackendType PyRRef RRef RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo",
        "get_worker_info init_rpc remote rpc_async rpc_sync shutdown",
    ),
    "distributed.tensor": (
        "DTensor DeviceMesh Partial Placement Replicate Shard _StridedShard",
        "distribute_module distribute_tensor empty full init_device_mesh ones rand randn zeros",
    ),
    "distributed.tensor._utils": ("", "compute_local_shape_and_global_offset"),
    "distributed.tensor.experimental": ("", "context_parallel implicit_replication local_map"),
    "distributed.tensor.parallel": (
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel SequenceParallel",
        "loss_parallel parallelize_module",
    ),
    "nn.parallel": ("DistributedDataParallel", ""),
}
#: PyTorch has the same names in several modules.
for _same, _as in {
    "_composable.fsdp": "fsdp", "_tensor": "tensor", "distributed_c10d": "", "fsdp.api": "fsdp", "fsdp.fully_sharded_data_parallel": "fsdp",
    "nn.functional": "nn", "tensor.placement_types": "tensor", "_tensor.experimental": "tensor.experimental",
}.items():  # fmt: skip
    MODULES[f"distributed.{_same}"] = MODULES["distributed" if _as == "" else f"distributed.{_as}"]
MODULES["nn.parallel.distributed"] = MODULES["nn.parallel"]

#: Candelabra's modules by PyTorch's, where the two have other names.
_PLACES = {
    "_C._distributed_rpc": "distributed.rpc",
    "distributed._composable.fsdp": "distributed.fsdp",
    "distributed._tensor": "distributed.tensor",
    "distributed._tensor.experimental": "distributed.tensor.experimental",
    "distributed.distributed_c10d": "distributed",
    "distributed.fsdp.api": "distributed.fsdp",
    "distributed.fsdp.fully_sharded_data_parallel": "distributed.fsdp",
    "distributed.tensor._utils": "distributed.tensor.layout",
    "distributed.tensor.placement_types": "distributed.tensor.placements",
}

_classes: dict[str, type] = {}


def _class(name: str) -> type:
    """Return the class of a name, the same in all modules: programs ask for instances of it."""
    if name not in _classes:

        def refuse(self: Any, *arguments: Any, **options: Any) -> NoReturn:
            raise RuntimeError(f"{name}: {_way_out()}")

        _classes[name] = type(
            name,
            (),
            {"__init__": refuse, "__module__": "torch.distributed", "__doc__": f"Not available: {_way_out()}."},
        )
    return _classes[name]


def _function(name: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise RuntimeError(f"torch.distributed.{name}(): {_way_out()}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def names_of(module: str) -> dict[str, Any]:
    """Return the classes and functions of a module of PyTorch."""
    classes, functions = MODULES.get(module, ("", ""))
    refused = {name: _class(name) for name in classes.split()} | {name: _function(name) for name in functions.split()}
    if not refused or not is_installed():
        return refused
    place = "distributed.data_parallel" if module.startswith("nn.parallel") else _PLACES.get(module, module)
    try:
        there = importlib.import_module(f"candelabra.{place}")
    except ModuleNotFoundError:
        return refused
    found = {name: getattr(there, name) for name in refused if hasattr(there, name)}
    # A module of Candelabra under its own name is mirrored as it is.
    return refused | found if place != module else {name: each for name, each in refused.items() if name not in found}
