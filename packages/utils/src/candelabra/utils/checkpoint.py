"""Checkpointing, under PyTorch's path: it is candelabra.autograd's."""

from candelabra.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]
