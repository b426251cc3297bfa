"""Activation checkpointing under PyTorch's path; implemented in candelabra.autograd."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

# Import the package before its submodule: otherwise two importing threads can deadlock.
import candelabra.autograd as _autograd  # noqa: F401
from candelabra import _C, Tensor, accelerator, pytree
from candelabra._C import default_generator, device
from candelabra.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop
from candelabra.autograd.checkpoint import _Reentrant as CheckpointFunction

from .selective_checkpoint import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class DefaultDeviceType:
    """The type of the devices whose random numbers `set_device_states` sets."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the type: by default that of the accelerator, or the CPU's."""
        current = accelerator.current_accelerator()
        return DefaultDeviceType._default_device_type or ("cpu" if current is None else current.type)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among the inputs requires grad."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        _C.warn("None of the inputs have requires_grad=True. Gradients will be None")


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a tuple with its tensors detached; those that required grad are leaves that do.

    Raises
    ------
    RuntimeError
        If it is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value for value in inputs
    )


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the numbers of the accelerators that tensors among the arguments are on, and the
    states of their random generators.
    """
    tensors = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, Tensor) and leaf.device.index is not None]
    return [tensor.get_device() for tensor in tensors], [
        default_generator(tensor.device).get_state() for tensor in tensors
    ]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set the states of the random generators of several devices of one type."""
    kind = DefaultDeviceType.get_device_type() if device_type is None else device_type
    for index, state in zip(devices, states, strict=False):
        default_generator(device(kind, index)).set_state(state)


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing, for the computation and the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()
