"""Communication hooks by name."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from . import debugging_hooks, default_hooks, quantization_hooks
from . import powerSGD_hook as power_sgd

if TYPE_CHECKING:
    from ...data_parallel import DistributedDataParallel


class _Registers:
    """Registers a hook with a model: the value of a member of `DDPCommHookType`."""

    def __init__(self, comm_hook: Callable[..., Any], make_state: Callable[[Any], Any] | None = None) -> None:
        self._hook = comm_hook
        self._make_state = make_state

    def __call__(self, model: DistributedDataParallel, state: Any = None) -> None:
        model.register_comm_hook(state if self._make_state is None else self._make_state(state), self._hook)


class DDPCommHookType(Enum):
    """The hooks of this package. A member's value registers it: ``value(model=…, state=…)``."""

    ALLREDUCE = _Registers(default_hooks.allreduce_hook)
    FP16_COMPRESS = _Registers(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _Registers(default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Registers(quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _Registers(quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = _Registers(power_sgd.powerSGD_hook, partial(power_sgd.PowerSGDState, matrix_approximation_rank=1))
    POWER_SGD_RANK2 = _Registers(power_sgd.powerSGD_hook, partial(power_sgd.PowerSGDState, matrix_approximation_rank=2))
    BATCHED_POWER_SGD = _Registers(
        power_sgd.batched_powerSGD_hook, partial(power_sgd.PowerSGDState, matrix_approximation_rank=1)
    )
    BATCHED_POWER_SGD_RANK2 = _Registers(
        power_sgd.batched_powerSGD_hook, partial(power_sgd.PowerSGDState, matrix_approximation_rank=2)
    )
    NOOP = _Registers(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: DistributedDataParallel, state: Any = None) -> None:
    """Register a hook with a model.

    Parameters
    ----------
    comm_hook_type : DDPCommHookType
        The hook.
    model : DistributedDataParallel
        The model.
    state
        A process group; None for the world.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
    >>> register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)
    >>> dist.destroy_process_group()
    """
    comm_hook_type.value(model=model, state=state)
