"""The first generation of FSDP, which is not here: its names raise and say what to use."""

from __future__ import annotations

from typing import Any, NoReturn

_WAY_OUT = (
    "{} belongs to the first generation of FSDP, which Candelabra does not have: use "
    "candelabra.distributed.fsdp.fully_shard on each block and then on the model, with MixedPrecisionPolicy, "
    "CPUOffloadPolicy and a mesh of two dimensions for hybrid sharding; state dicts have DTensors, which "
    "candelabra.distributed.checkpoint saves"
)


def _refusing(name: str) -> Any:
    """Return a class that cannot be made; programs may ask for instances of it."""

    def refuse(self: Any, *arguments: Any, **keywords: Any) -> NoReturn:
        raise NotImplementedError(_WAY_OUT.format(name))

    return type(
        name,
        (),
        {
            "__init__": refuse,
            "__module__": "candelabra.distributed.fsdp",
            "__doc__": f"Not here. {_WAY_OUT.format(name)}.",
        },
    )


BackwardPrefetch = _refusing("BackwardPrefetch")
CPUOffload = _refusing("CPUOffload")
FullOptimStateDictConfig = _refusing("FullOptimStateDictConfig")
FullStateDictConfig = _refusing("FullStateDictConfig")
FullyShardedDataParallel = _refusing("FullyShardedDataParallel")
LocalOptimStateDictConfig = _refusing("LocalOptimStateDictConfig")
LocalStateDictConfig = _refusing("LocalStateDictConfig")
MixedPrecision = _refusing("MixedPrecision")
OptimStateDictConfig = _refusing("OptimStateDictConfig")
OptimStateKeyType = _refusing("OptimStateKeyType")
ShardedOptimStateDictConfig = _refusing("ShardedOptimStateDictConfig")
ShardedStateDictConfig = _refusing("ShardedStateDictConfig")
ShardingStrategy = _refusing("ShardingStrategy")
StateDictConfig = _refusing("StateDictConfig")
StateDictSettings = _refusing("StateDictSettings")
StateDictType = _refusing("StateDictType")
