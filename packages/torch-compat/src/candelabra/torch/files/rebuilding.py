"""Functions that PyTorch's pickles call, under their names there (``torch._utils``,
``torch._tensor``, ``torch.storage``, ``torch.serialization``).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.composite.methods.tensor_protocol import as_class, tensor_on

__all__ = [
    "_get_layout", "_rebuild_from_type_v2", "_rebuild_meta_tensor_no_storage", "_rebuild_parameter",
    "_rebuild_parameter_with_state", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_wrapper_subclass",
    "_set_obj_state",
]  # fmt: skip


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """Return a tensor on a storage.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.files.rebuilding import _rebuild_tensor
    >>> from candelabra.storage import TypedStorage
    >>> storage = TypedStorage([1.0, 2.0, 3.0], _internal=True)
    >>> _rebuild_tensor(storage, 1, (2,), (1,))
    tensor([2., 3.])
    """
    return _typed(storage, storage_offset, size, stride, storage.dtype)


def _typed(storage: Any, offset: int, size: Any, stride: Any, dtype: Any) -> Tensor:
    memory = getattr(storage, "_untyped_storage", storage)
    flat = candelabra._C.tensor_on_storage(memory, candelabra.uint8)
    return tensor_on(flat, dtype, tuple(size), tuple(stride), offset)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """Return a leaf on a typed storage. Backward hooks are not restored."""
    made = _with_metadata(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    return as_class(Tensor, made, requires_grad)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """Return a leaf of a dtype for which there is no class of storages."""
    made = _with_metadata(_typed(storage, storage_offset, size, stride, dtype), metadata)
    return as_class(Tensor, made, requires_grad)


def _with_metadata(tensor: Tensor, metadata: dict[str, bool] | None) -> Tensor:
    # PyTorch may store a tensor as the conjugate or the negative of its memory.
    if metadata and metadata.get("conj"):
        tensor = candelabra.conj_physical(tensor)
    if metadata and metadata.get("neg"):
        tensor = candelabra.neg(tensor)
    return tensor


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """Return a tensor without memory."""
    return candelabra.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: int, layout: Any, device: Any, requires_grad: bool
) -> Tensor:
    """Return a tensor of a class that computes operators on the tensors that it wraps."""
    return Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=storage_offset,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """Return a parameter."""
    return candelabra.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """Return a parameter with attributes."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func: Any, new_type: type, args: tuple[Any, ...], state: Any) -> Any:
    """Return a tensor of a class, with attributes."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if getattr(type(made), "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Set the attributes and slots of an object."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def _get_layout(name: str) -> Any:
    """Return a layout by its name."""
    return getattr(candelabra, name.removeprefix("torch."))


def no_hooks() -> OrderedDict[int, Any]:
    """Return the empty table of hooks that PyTorch's pickles have for each tensor."""
    return OrderedDict()
