"""What PyTorch's checkpoints have for plans and other storage, which is not here: classes and
functions that raise and say what to use.
"""

from __future__ import annotations

from typing import Any, NoReturn

_PLANS = (
    "ranks save and load without a plan: give tensors of your own classes the method __sharded__, and other objects "
    "state_dict() and load_state_dict()"
)
_STORAGE = "checkpoints are folders on a file system that all ranks share, of FileSystemWriter and FileSystemReader"
_FILES = (
    "save a whole state, of get_model_state_dict with StateDictOptions(full_state_dict=True), by "
    "candelabra.save(state, path, format='safetensors'); load one by set_model_state_dict with broadcast_from_rank0=True"
)


def _refusing(name: str, way_out: str) -> Any:
    """Return a class that cannot be made; programs may ask for instances of it."""

    def refuse(self: Any, *arguments: Any, **keywords: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not supported: {way_out}")

    return type(
        name,
        (),
        {
            "__init__": refuse,
            "__module__": "candelabra.distributed.checkpoint",
            "__doc__": f"Not here: {way_out}.",
        },
    )


LoadPlan = _refusing("LoadPlan", _PLANS)
LoadPlanner = _refusing("LoadPlanner", _PLANS)
ReadItem = _refusing("ReadItem", _PLANS)
SavePlan = _refusing("SavePlan", _PLANS)
SavePlanner = _refusing("SavePlanner", _PLANS)
WriteItem = _refusing("WriteItem", _PLANS)
StorageReader = _refusing("StorageReader", _STORAGE)
StorageWriter = _refusing("StorageWriter", _STORAGE)
HuggingFaceStorageReader = _refusing("HuggingFaceStorageReader", _FILES)
HuggingFaceStorageWriter = _refusing("HuggingFaceStorageWriter", _FILES)
QuantizedHuggingFaceStorageReader = _refusing("QuantizedHuggingFaceStorageReader", _FILES)


def load_sharded_optimizer_state_dict(
    model_state_dict: Any, optimizer_key: Any, storage_reader: Any, planner: Any = None
) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(
        "load_sharded_optimizer_state_dict is not supported: load into the state of get_optimizer_state_dict, and set it by "
        "set_optimizer_state_dict"
    )
