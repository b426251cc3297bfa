"""Communication hooks that step an optimizer for the parameters of a bucket once it is reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from candelabra import Tensor
from candelabra.autograd.engine import queue_callback

from ..futures import Future
from .averaging import averaged
from .grad_bucket import GradBucket

_Hook = Callable[[Any, GradBucket], Future]


class _OptimizerHookState:
    """The optimizer that `_hook_then_optimizer` steps.

    Parameters
    ----------
    functional_optim
        Of `candelabra.distributed.optim.as_functional_optim`, or anything with ``step_param``.
    params : iterable of Tensor, optional
        Those that it steps; all by default.

    Raises
    ------
    ValueError
        There is no method ``step_param``.
    """

    def __init__(self, functional_optim: Any, params: Iterable[Tensor] | None = None) -> None:
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        self.params_to_optimize = None if params is None else set(params)


def _hook_then_optimizer(hook: _Hook, optimizer_state: _OptimizerHookState) -> _Hook:
    """Return a hook that calls another one, and then steps the parameters of the bucket."""

    def reduce_and_step(hook_state: Any, bucket: GradBucket) -> Future:
        def step(done: Future) -> Tensor:
            bucket.set_buffer(done.value())
            chosen = optimizer_state.params_to_optimize
            for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
                if chosen is None or parameter in chosen:
                    optimizer_state.functional_optimizer.step_param(parameter, gradient)
            return bucket.buffer()

        return hook(hook_state, bucket).then(step)

    return reduce_and_step


def _apply_optim_in_backward_hook(gradient_is_bucket_view: bool) -> _Hook:
    """Return a hook that averages gradients and steps the parameters' own optimizers.

    Those are of `candelabra.distributed.optim._apply_optimizer_in_backward`. Gradients of their
    parameters are None after the backward pass.

    Parameters
    ----------
    gradient_is_bucket_view : bool
        Has no effect.
    """

    def forget(parameters: list[Tensor]) -> None:
        for parameter in parameters:
            if hasattr(parameter, "_in_backward_optimizers"):
                parameter.grad = None

    def reduce_and_step(ddp: Callable[[], Any], bucket: GradBucket) -> Future:
        def step(done: Future) -> Tensor:
            bucket.set_buffer(done.value())
            for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
                before, parameter.grad = parameter.grad, gradient
                for optimizer in getattr(parameter, "_in_backward_optimizers", ()):
                    optimizer.step()
                parameter.grad = before
            return bucket.buffer()

        # Queued after the end of the reduction, which writes the gradients.
        queue_callback(lambda: forget(bucket.parameters()))
        return averaged(ddp().process_group, bucket.buffer()).then(step)

    return reduce_and_step
