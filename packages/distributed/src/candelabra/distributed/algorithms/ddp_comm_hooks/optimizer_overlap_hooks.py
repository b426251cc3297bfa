"""Hooks that step an optimizer for the parameters of a bucket as soon as it is reduced."""

from ...data_parallel.stepping import _apply_optim_in_backward_hook, _hook_then_optimizer, _OptimizerHookState

__all__ = ["_OptimizerHookState", "_apply_optim_in_backward_hook", "_hook_then_optimizer"]
