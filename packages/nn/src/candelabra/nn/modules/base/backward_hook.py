"""Backward hooks around a function that is not the call of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from candelabra import Tensor

from .hooks import BackwardHooks


class BackwardHook(BackwardHooks):
    """Run backward hooks around what is computed between two sets of tensors, as
    ``torch.utils.hooks.BackwardHook``.

    Parameters
    ----------
    module
        What the hooks get as their first argument.
    user_hooks
        Called with the gradients of the inputs and of the outputs.
    user_pre_hooks
        Called before, with the gradients of the outputs.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.modules.base.backward_hook import BackwardHook
    >>> hook = BackwardHook(None, [lambda module, inputs, outputs: (inputs[0] * 2,)], [])
    >>> x = candelabra.ones(1, requires_grad=True)
    >>> (inner,) = hook.setup_input_hook((x,))
    >>> hook.setup_output_hook(inner * 3).backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(
        self, module: Any, user_hooks: Iterable[Callable[..., Any]], user_pre_hooks: Iterable[Callable[..., Any]]
    ) -> None:
        super().__init__(module)
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks

    def _hooks(self) -> Iterable[Callable[..., Any]]:
        return self.user_hooks

    def _pre_hooks(self) -> Iterable[Callable[..., Any]]:
        return self.user_pre_hooks or ()

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with tensors whose gradients are seen in place of those that
        require grad.
        """
        return self.watch_inputs(args)

    def setup_output_hook(self, args: Any) -> Any:
        """Return a result, a tensor or a tuple, with tensors whose gradients are seen."""
        return self.watch_outputs(args) if isinstance(args, Tensor | tuple) else args
