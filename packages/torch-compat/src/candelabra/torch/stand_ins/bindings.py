"""``torch._C``: names of PyTorch's compiled module that programs use."""

from __future__ import annotations

import enum
import sys
import weakref
from typing import Any

import candelabra
from candelabra import _C, Tensor, UntypedStorage

from .archives import PyTorchFileReader, PyTorchFileWriter
from .internals.jit_annotations import Graph, Node, Value
from .operators.dispatch_keys import (
    DispatchKey,
    DispatchKeySet,
    _dispatch_has_kernel,
    _dispatch_keys,
    _ExcludeDispatchKeyGuard,
)

__all__ = [
    "DispatchKey",
    "DispatchKeySet",
    "Graph",
    "Node",
    "Value",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "StorageBase",
    "TensorBase",
    "_ExcludeDispatchKeyGuard",
    "_TensorBase",
    "_TensorMeta",
    "_WeakTensorRef",
    "_DisableTorchDispatch",
    "_EnableTorchFunction",
    "_TorchFunctionState",
    "_current_autograd_node",
    "_current_graph_task_id",
    "_dispatch_isTensorSubclassLike",
    "_will_engine_execute_node",
    "_are_functorch_transforms_active",
    "_data_address",
    "_dispatch_has_kernel",
    "_dispatch_keys",
    "_get_dispatch_stack_at",
    "_get_function_stack_at",
    "_get_privateuse1_backend_name",
    "_get_torch_function_state",
    "_get_tracing_state",
    "_is_fwd_grad_enabled",
    "_is_alias_of",
    "_is_cow_tensor",
    "_is_torch_function_all_disabled",
    "_is_torch_function_enabled",
    "_len_torch_dispatch_stack",
    "_len_torch_function_stack",
    "_log_api_usage_metadata",
    "_log_api_usage_once",
    "_pop_torch_dispatch_stack",
    "_pop_torch_function_stack",
    "_push_on_torch_dispatch_stack",
    "_push_on_torch_function_stack",
    "_set_fwd_grad_enabled",
    "_storage_address",
    "_set_torch_function_state",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
]

TensorBase = _TensorBase = Tensor
#: The class of the classes of tensors.
_TensorMeta = type(Tensor)
StorageBase = UntypedStorage
#: What the CPU backend has.
has_lapack = has_mkl = has_openmp = has_spectral = "cpu" in candelabra.backends.installed()


def _log_api_usage_once(event: str) -> None:
    """Do nothing, as PyTorch does without a logger: libraries tell that they are used."""
    if not isinstance(event, str):
        raise TypeError(f"_log_api_usage_once(): incompatible function arguments: {event!r} is no str")


def _log_api_usage_metadata(event: str, metadata_map: dict[str, str]) -> None:
    """Do nothing, as PyTorch does without a logger."""
    if not isinstance(event, str) or not isinstance(metadata_map, dict):
        raise TypeError("_log_api_usage_metadata(): incompatible function arguments: expected a str and a dict")


def _are_functorch_transforms_active() -> bool:
    """Return whether a function is being transformed, by vmap, grad or another transform."""
    layers = sys.modules.get("candelabra.autograd.functorch_layers")
    return layers is not None and layers.are_transforms_active()


def _get_privateuse1_backend_name() -> str:
    """Return the name of the device type that PyTorch keeps for backends outside its tree."""
    return "privateuseone"


def _get_tracing_state() -> None:
    """Return None: no function is traced by TorchScript."""


# ---- the stacks of modes, by PyTorch's names

_push_on_torch_function_stack, _pop_torch_function_stack = _C.push_torch_function_mode, _C.pop_torch_function_mode
_push_on_torch_dispatch_stack, _pop_torch_dispatch_stack = _C.push_torch_dispatch_mode, _C.pop_torch_dispatch_mode


def _len_torch_function_stack() -> int:
    return len(_C.torch_function_modes())


def _get_function_stack_at(level: int) -> Any:
    return _C.torch_function_modes()[level]


def _len_torch_dispatch_stack() -> int:
    return len(_C.torch_dispatch_modes())


def _get_dispatch_stack_at(level: int) -> Any:
    return _C.torch_dispatch_modes()[level]


def _is_torch_function_enabled() -> bool:
    return _C.torch_function_state() == 0


def _is_torch_function_all_disabled() -> bool:
    return _C.torch_function_state() == 2


class _DisableTorchDispatch:
    """Neither modes nor classes are asked for operators on this thread while the object lives."""

    def __init__(self) -> None:
        self._before: bool | None = _C.set_torch_dispatch_enabled(False)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.__del__()

    def __del__(self) -> None:
        if self._before is not None:
            _C.set_torch_dispatch_enabled(self._before)
            self._before = None


class _EnableTorchFunction:
    """Overrides are called on this thread while the object lives."""

    def __init__(self) -> None:
        self._before = _C.set_torch_function_state(0)

    def __del__(self) -> None:
        _C.set_torch_function_state(self._before)


def _is_alias_of(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors have the same storage."""
    return first.untyped_storage()._cdata == second.untyped_storage()._cdata


def _is_cow_tensor(tensor: Tensor) -> bool:
    """Return whether a tensor shares memory that is copied before one writes to it."""
    return _C.is_copy_on_write(tensor.untyped_storage())


def _storage_address(tensor: Tensor) -> int:
    """Return a number that is the same for all tensors on one memory."""
    return tensor.untyped_storage()._cdata


def _data_address(tensor: Tensor) -> int:
    """Return the address of the first element, only to be compared: unlike ``data_ptr()`` it leaves
    memory shared that is copied before it is written to.
    """
    return _C.storage_address(tensor.untyped_storage()) + tensor.storage_offset() * tensor.element_size()


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"_WeakTensorRef(): incompatible function arguments: {type(tensor).__name__} is no Tensor")
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor is gone."""
        return self._reference() is None


def _dispatch_isTensorSubclassLike(tensor: Tensor) -> bool:
    """Return whether the class of a tensor, a mode or a transform may compute its operators."""
    found = getattr(type(tensor), "__torch_dispatch__", None)
    return (found is not None and found is not _C._disabled_torch_dispatch_impl) or bool(_C.torch_dispatch_modes())


def _walk() -> Any:
    from candelabra import autograd  # noqa: F401  (a package is imported before its modules)
    from candelabra.autograd.engine import current_walk

    return current_walk()


def _current_graph_task_id() -> int:
    """Return the number of the backward pass that is running on this thread, or -1."""
    walk = _walk()
    return -1 if walk is None else int(walk.number)


def _current_autograd_node() -> Any:
    """Return the node whose hooks or custom function the backward pass is calling, or None."""
    walk = _walk()
    return None if walk is None else walk.node


def _will_engine_execute_node(node: Any) -> bool:
    """Return whether the backward pass that is running reaches a node.

    Raises
    ------
    RuntimeError
        If none is running, or the argument is no node.
    """
    from candelabra import autograd  # noqa: F401  (a package is imported before its modules)
    from candelabra.autograd.engine import edge_of
    from candelabra.autograd.graph import GradientEdge

    walk = _walk()
    if walk is None:
        raise RuntimeError("_will_engine_execute_node: expected to be called during the backward pass")
    if isinstance(node, Tensor) or not hasattr(node, "next_functions"):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    return bool(walk.reaches(edge_of(GradientEdge(node, 0))))


class _TorchFunctionState(enum.Enum):
    """Which overrides of functions are called."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    """Return which overrides of functions are called."""
    return _TorchFunctionState(_C.torch_function_state())


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    """Set which overrides of functions are called."""
    _C.set_torch_function_state(state.value)


def _is_fwd_grad_enabled() -> bool:
    """Return whether tangents of forward-mode differentiation are computed on this thread."""
    from candelabra import autograd  # noqa: F401  (a package is imported before its modules)
    from candelabra.autograd.transforms import jvp_layer

    return jvp_layer.is_forward_enabled()


def _set_fwd_grad_enabled(mode: bool) -> None:
    """Set whether tangents of forward-mode differentiation are computed on this thread."""
    from candelabra import autograd  # noqa: F401  (a package is imported before its modules)
    from candelabra.autograd.transforms import jvp_layer

    jvp_layer.set_forward_enabled(mode)
