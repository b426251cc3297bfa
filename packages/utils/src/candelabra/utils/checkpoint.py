"""Activation checkpointing under PyTorch's path; implemented in candelabra.autograd."""

# Import the package before its submodule: otherwise two importing threads can deadlock.
import candelabra.autograd as _autograd  # noqa: F401
from candelabra.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]
