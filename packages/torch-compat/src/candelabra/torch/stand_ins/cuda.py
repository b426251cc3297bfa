"""``torch.cuda``: the old types of tensors on CUDA devices."""

from __future__ import annotations

from candelabra.composite.creation.legacy_types import TENSOR_TYPES, TensorType

#: The types by name. Tensors on a CUDA device are their instances.
_TYPES = {
    name: TensorType(
        name,
        (),
        {"__module__": "candelabra.cuda", "__doc__": kind.__doc__, "dtype": kind.dtype, "device_type": "cuda"},
    )
    for name, kind in TENSOR_TYPES.items()
}

__all__ = [*_TYPES]
globals().update(_TYPES)
