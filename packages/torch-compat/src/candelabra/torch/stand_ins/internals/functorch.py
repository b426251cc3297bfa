"""``torch._C._functorch`` and ``torch._functorch``: tensors of vmap and of the other transforms."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor
from candelabra.autograd import functorch_layers as _layers
from candelabra.autograd.transforms.grad_layer import TapedTensor
from candelabra.autograd.transforms.jvp_layer import DualTensor
from candelabra.autograd.transforms.vmap import _name as _get_name
from candelabra.autograd.transforms.vmap import vmap_layer_of
from candelabra.autograd.transforms.vmap_layer import BatchedTensor, out_of
from candelabra.pytree import tree_flatten, tree_unflatten

from ..pytree import _broadcast_to_and_flatten

__all__ = [
    "Tensor", "_add_batch_dim", "_broadcast_to_and_flatten", "_get_name", "_maybe_remove_batch_dim", "_remove_batch_dim", "get_unwrapped",
    "is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor", "is_legacy_batchedtensor", "maybe_get_bdim", "maybe_get_level", "tree_flatten", "tree_unflatten",
]  # fmt: skip


def _add_batch_dim(self: Tensor, batch_dim: int, level: int) -> Tensor:
    """Return a tensor whose dimension is that over which the vmap of a level maps.

    Raises
    ------
    RuntimeError
        If there is no vmap of the level.
    """
    return vmap_layer_of(level).wrap(self, batch_dim % self.ndim)


def _remove_batch_dim(self: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """Return a tensor with the dimension over which the vmap of a level maps, at `out_dim`."""
    layer = vmap_layer_of(level)
    with _layers.outside():
        return out_of(layer, self, out_dim % (self.ndim + 1))


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """Return a result of a function that vmap maps, with its batch at `out_dim`.

    Raises
    ------
    ValueError
        If the result is no tensor, or a batched one and `out_dim` is None.
    """
    if out_dim is None:
        if is_batchedtensor(batched_output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def is_batchedtensor(tensor: Any) -> bool:
    """Return whether a tensor is one of a function that vmap maps."""
    return isinstance(tensor, BatchedTensor)


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Return whether a tensor is one of a transformed function."""
    return isinstance(tensor, _layers.Wrapper)


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Return whether a tensor is one of a function that grad, vjp or jvp transforms."""
    return isinstance(tensor, TapedTensor | DualTensor)


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Return False: there is one vmap, and its tensors are those of `is_batchedtensor`."""
    return False


def get_unwrapped(tensor: Any) -> Tensor:
    """Return the tensor for which a tensor of a transformed function stands."""
    if not isinstance(tensor, _layers.Wrapper):
        raise RuntimeError("No wrappers present!")
    return tensor._value


def maybe_get_bdim(tensor: Any) -> int:
    """Return the dimension over which vmap maps, or -1 for other tensors."""
    found = tensor._bdim if isinstance(tensor, BatchedTensor) else None
    return -1 if found is None else found


def maybe_get_level(tensor: Any) -> int:
    """Return the level of the transform of a tensor, or -1 for other tensors."""
    return tensor._layer.number if isinstance(tensor, _layers.Wrapper) else -1
