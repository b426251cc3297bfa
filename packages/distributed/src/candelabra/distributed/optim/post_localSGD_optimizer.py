"""`PostLocalSGDOptimizer`: averages parameters after an optimizer's steps."""

from __future__ import annotations

from typing import Any

from candelabra import _C
from candelabra.optim import Optimizer

from ..algorithms.model_averaging.averagers import ModelAverager


class PostLocalSGDOptimizer(Optimizer):
    """Let an averager average the parameters after each step of an optimizer.

    Parameters
    ----------
    optim : Optimizer
        The optimizer of this rank.
    averager : ModelAverager
        Such as `candelabra.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager`.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> from candelabra.distributed.optim import PostLocalSGDOptimizer
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = candelabra.nn.Linear(2, 1)
    >>> local = candelabra.optim.SGD(model.parameters(), lr=0.1)
    >>> optimizer = PostLocalSGDOptimizer(local, PeriodicModelAverager(period=4, warmup_steps=100))
    >>> model(candelabra.ones(3, 2)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.averager.step
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The state of the optimizer."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state, with the averager's step."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the optimizer's state, and the averager's step."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            _C.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:  # type: ignore[override]
        """Do a step of the optimizer; average the parameters if it is time to."""
        self.optim.step()
        self.averager.average_parameters(self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters to the optimizer."""
        self.optim.add_param_group(param_group)
