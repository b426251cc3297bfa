"""Checkpointing, under PyTorch's path: it is candelabra.autograd's."""

# The package before its module, or two threads could each wait for what the other imports.
import candelabra.autograd as _autograd  # noqa: F401
from candelabra.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]
