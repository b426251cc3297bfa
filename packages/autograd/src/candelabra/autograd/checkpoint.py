"""Activation checkpointing: recompute the forward pass instead of saving tensors."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from .engine import accumulates_everywhere, current_walk
from .function import Function
from .graph import saved_tensors_hooks, transformation_depth
from .walks import backward

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class CheckpointError(RuntimeError):
    """Raised when the recomputation differs from the original forward pass.

    Examples
    --------
    >>> import candelabra
    >>> issubclass(candelabra.autograd.checkpoint.CheckpointError, RuntimeError)
    True
    """


class _StopComputing(Exception):
    """Raised once every tensor that the backward pass needs has been recomputed."""


class _EarlyStop(threading.local):
    enabled = True


_early_stop = _EarlyStop()


class set_checkpoint_early_stop:
    """Set whether recomputation stops once it has all the tensors that the gradient needs.

    Parameters
    ----------
    enable
        Whether to stop early; the default is True.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = candelabra.ones(1, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(candelabra.exp, x, use_reentrant=False)
    >>> y.backward()
    """

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        self.before, _early_stop.enabled = _early_stop.enabled, self.enable

    def __exit__(self, *error: object) -> None:
        _early_stop.enabled = self.before


class _RandomState:
    """The states of the random generators that a computation may use."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        devices = {argument.device for argument in arguments if isinstance(argument, Tensor)}
        devices.add(candelabra.device("cpu"))
        self.states = [
            (generator, generator.get_state()) for generator in map(_generator_of, devices) if generator is not None
        ]

    def __enter__(self) -> None:
        self.outer = [(generator, generator.get_state()) for generator, _ in self.states]
        for generator, state in self.states:
            generator.set_state(state)

    def __exit__(self, *error: object) -> None:
        for generator, state in self.outer:
            generator.set_state(state)


def _generator_of(device: Any) -> Any:
    return candelabra._C.default_generator(device)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function` without saving tensors for backward; the backward pass calls it again.

    Parameters
    ----------
    function
        The function to recompute. It must do the same in both calls.
    args, kwargs
        Its arguments.
    use_reentrant
        Whether to run a nested backward pass over the recomputed graph. At least one of `args`
        must then require grad, and `kwargs` and `context_fn` are not supported. False by
        default.
    context_fn
        Returns two context managers: one for the forward pass and one for the recomputation.
    determinism_check
        ``"default"`` compares shapes, dtypes and devices of recomputed tensors; ``"none"``
        turns the check off.
    debug
        Accepted for compatibility.
    preserve_rng_state
        Whether the recomputation draws the same random numbers.
    Returns
    -------
    object
        The return value of `function`.

    Raises
    ------
    CheckpointError
        If the recomputation saves other tensors than the forward pass.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd.checkpoint import checkpoint
    >>> x = candelabra.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda t: t.sin().exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad.shape
    candelabra.Size([2])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of 'default', 'none' but got {determinism_check!r}")
    if use_reentrant is None:
        _warn_of_default()
    if not candelabra.is_grad_enabled() or transformation_depth():
        # Function transforms do not recompute. The gradients are the same.
        return function(*args, **kwargs)
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}; use_reentrant=True takes none")
        if context_fn is not None or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return _Reentrant.apply(function, preserve_rng_state, *args)
    return _by_hooks(function, args, kwargs, context_fn, determinism_check == "default", preserve_rng_state)


def _warn_of_default() -> None:
    _C.warn(
        "checkpoint: the use_reentrant parameter should be passed explicitly. Without it, it is False here, and True in PyTorch.",
    )


class _Reentrant(Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *arguments: Any) -> Any:
        ctx.function = function
        ctx.state = _RandomState(arguments) if preserve else None
        ctx.autocasts = _autocasts()
        ctx.layout_of_arguments = [None if isinstance(argument, Tensor) else argument for argument in arguments]
        ctx.tensor_positions = [at for at, argument in enumerate(arguments) if isinstance(argument, Tensor)]
        ctx.save_for_backward(*(arguments[at] for at in ctx.tensor_positions))
        return function(*arguments)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if not accumulates_everywhere():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the "
                "`inputs` argument."
            )
        arguments = list(ctx.layout_of_arguments)
        for at, tensor in zip(ctx.tensor_positions, ctx.saved_tensors, strict=True):
            arguments[at] = tensor.detach().requires_grad_(tensor.requires_grad)
        with candelabra.enable_grad():
            outputs = _within_all([*ctx.autocasts, ctx.state], ctx.function, arguments, {})
        several = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        pairs = [
            (output, gradient)
            for output, gradient in zip(several, gradients, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        return (None, None, *(argument.grad if isinstance(argument, Tensor) else None for argument in arguments))


class _Frame:
    """One checkpointed call: metadata of the tensors it would save, and how to recompute them."""

    def __init__(self, recompute: Callable[[], Any], check: bool) -> None:
        self.recompute = recompute
        self.check = check
        self.stops_early = _early_stop.enabled
        self.described: list[tuple[Any, Any, Any]] = []
        self.computed: list[Tensor | None] = []
        #: The number of the backward pass for which the call was computed again.
        self.walk = -1

    def pack(self, tensor: Tensor) -> int:
        self.described.append((tuple(tensor.shape), tensor.dtype, tensor.device))
        return len(self.described) - 1

    def unpack(self, number: int) -> Tensor:
        walk = current_walk()
        at = -1 if walk is None else walk.number
        if number >= len(self.computed) or self.computed[number] is None:
            if at != -1 and at == self.walk:
                raise CheckpointError(
                    "checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
                    "ctx.saved_tensors in backward, make sure to do so only once."
                )
            self.compute_again()
            self.walk = at
        tensor = self.computed[number]
        if tensor is None:
            raise CheckpointError(
                "checkpoint: a tensor that was computed again has been used already; retain_graph=True was not given"
            )
        self.computed[number] = None
        return tensor

    def compute_again(self) -> None:
        self.computed = []

        def keep(tensor: Tensor) -> int:
            number = len(self.computed)
            if number >= len(self.described):
                raise CheckpointError(
                    "checkpoint: trying to save more tensors during recomputation than during the original forward pass. "
                    f"Number of tensors saved during forward: {len(self.described)}"
                )
            found = (tuple(tensor.shape), tensor.dtype, tensor.device)
            if self.check and found != self.described[number]:
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass: tensor "
                    f"at position {number}: saved metadata: {self.described[number]}, recomputed metadata: {found}"
                )
            self.computed.append(tensor)
            if self.stops_early and len(self.computed) == len(self.described):
                raise _StopComputing
            return number

        def refuse(number: int) -> Tensor:
            raise CheckpointError("checkpoint: the second computation was walked back by itself; this is not supported")

        with contextlib.suppress(_StopComputing), candelabra.enable_grad(), saved_tensors_hooks(keep, refuse):
            self.recompute()
        if len(self.computed) != len(self.described):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and recomputation. Number of tensors saved "
                f"during forward: {len(self.described)}. Number of tensors saved during recomputation: {len(self.computed)}"
            )


def _by_hooks(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    context_fn: Any,
    check: bool,
    preserve: bool,
) -> Any:
    state = _RandomState([*args, *kwargs.values()]) if preserve else None
    autocasts = _autocasts()
    first, second = context_fn() if context_fn is not None else (None, None)

    def recompute() -> None:
        # Detach the inputs so that the recomputed graph does not reference the original one.
        arguments = [
            value.detach().requires_grad_() if isinstance(value, Tensor) and value.requires_grad else value
            for value in args
        ]
        named = {
            name: value.detach().requires_grad_() if isinstance(value, Tensor) and value.requires_grad else value
            for name, value in kwargs.items()
        }
        _within_all([*autocasts, state, second], function, arguments, named)

    frame = _Frame(recompute, check)
    with saved_tensors_hooks(frame.pack, frame.unpack):
        return _within(first, function, args, kwargs)


def _autocasts() -> list[Any]:
    """Return context managers that restore the autocast state of this call: one per device type."""
    from candelabra import amp

    caching = amp.is_autocast_cache_enabled()
    return [
        amp.autocast(kind, amp.get_autocast_dtype(kind), amp.is_autocast_enabled(kind), caching)
        for kind in candelabra._C.loaded_device_types()
        if kind != "meta"
    ]


def _within(context: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if context is None:
        return function(*args, **kwargs)
    with context:
        return function(*args, **kwargs)


def _within_all(
    contexts: Sequence[Any], function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    if not contexts:
        return function(*args, **kwargs)
    return _within(contexts[0], _within_all, (contexts[1:], function, args, kwargs), {})


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Checkpoint a sequence of functions in segments; the last segment is not checkpointed.

    Parameters
    ----------
    functions
        The functions or layers, applied in order, or a module whose children are used.
    segments
        The number of segments.
    input
        The input of the first function.
    use_reentrant, kwargs
        As in :func:`checkpoint`.

    Returns
    -------
    object
        The return value of the last function.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd.checkpoint import checkpoint_sequential
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> checkpoint_sequential([candelabra.sin, candelabra.exp, candelabra.cos], 2, x, use_reentrant=False).shape
    candelabra.Size([2])
    """
    if use_reentrant is None:
        _warn_of_default()
        use_reentrant = False
    chain = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= len(chain):
        raise ValueError(f"checkpoint_sequential: segments has to be between 1 and {len(chain)}, not {segments}")

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for step in chain[start:end]:
                value = step(value)
            return value

        return forward

    size = len(chain) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, **kwargs)
    return run(end, len(chain))(input)
