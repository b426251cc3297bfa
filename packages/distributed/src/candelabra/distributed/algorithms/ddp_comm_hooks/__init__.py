"""Communication hooks for `DistributedDataParallel.register_comm_hook`, and their names."""

from .registering import DDPCommHookType, register_ddp_comm_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]
