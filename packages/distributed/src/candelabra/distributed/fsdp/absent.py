"""The first generation of FSDP, which is not here: its names raise and say what to use."""

from __future__ import annotations

from typing import Any, NoReturn

_WAY_OUT = (
    "{} belongs to the first generation of FSDP, which Candelabra does not have: use "
    "candelabra.distributed.fsdp.fully_shard on each block and then on the model, with MixedPrecisionPolicy, "
    "CPUOffloadPolicy and a mesh of two dimensions for hybrid sharding"
)


def refusing_class(name: str) -> type:
    """Return a class that cannot be made."""

    def refuse(self: Any, *arguments: Any, **keywords: Any) -> NoReturn:
        raise NotImplementedError(_WAY_OUT.format(name))

    return type(
        name, (), {"__init__": refuse, "__module__": "candelabra.distributed.fsdp", "__doc__": _WAY_OUT.format(name)}
    )


FullyShardedDataParallel = refusing_class("FullyShardedDataParallel")
