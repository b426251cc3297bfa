"""Functions and modules whose work on a GPU, forward and backward, runs as recorded graphs."""

from __future__ import annotations

# The package before its module, or two threads could each wait for what the other imports.
import candelabra.accelerator as _accelerator  # noqa: F401
from candelabra.accelerator.graphs import Pool

from .devices import synchronize
from .graphs import CUDAGraph, graph, graph_pool_handle
from .streams import Stream, current_stream, stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor


def _leaves(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the tensors of nested tuples, lists and dicts, and how the same is built of others."""
    if isinstance(value, dict):
        parts = [_leaves(each) for each in value.values()]
        names = list(value)

        def build_dict(leaves: list[Any]) -> Any:
            return type(value)(zip(names, _built(parts, leaves), strict=True))

        return [leaf for found, _ in parts for leaf in found], build_dict
    if isinstance(value, (tuple, list)):
        parts = [_leaves(each) for each in value]

        def build_sequence(leaves: list[Any]) -> Any:
            built = _built(parts, leaves)
            return type(value)(*built) if hasattr(value, "_fields") else type(value)(built)

        return [leaf for found, _ in parts for leaf in found], build_sequence
    return [value], lambda leaves: leaves[0]


def _built(parts: list[tuple[list[Any], Callable[[list[Any]], Any]]], leaves: list[Any]) -> list[Any]:
    result, begin = [], 0
    for found, build in parts:
        result.append(build(leaves[begin : begin + len(found)]))
        begin += len(found)
    return result


class _Recorded:
    """One function: its arguments, results and gradients in memory that stays, and the graphs that
    go from the ones to the others.
    """

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        import candelabra

        self.function = function
        self.arguments = arguments
        self.inputs, _ = _leaves(arguments)
        if not all(isinstance(each, candelabra.Tensor) for each in self.inputs):
            raise TypeError("make_graphed_callables(): sample_args for each callable must contain only Tensors")
        is_module = hasattr(function, "parameters") and hasattr(function, "forward")
        self.parameters = tuple(function.parameters()) if is_module else ()
        if is_module:
            if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
                raise RuntimeError(
                    "Modules must not have hooks registered at the time they are passed. However, registering hooks on modules "
                    "after passing them through make_graphed_callables is allowed."
                )
            if any(each.requires_grad for each in function.buffers()):
                raise RuntimeError(
                    "In any module passed to make_graphed_callables, only parameters may be trainable. All buffers must have "
                    "requires_grad=False."
                )
        self.surface = (*self.inputs, *self.parameters)
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.outputs: list[Tensor] = []
        self.build: Callable[[list[Any]], Any] = lambda leaves: leaves[0]
        self.gradients_out: list[Tensor | None] = []
        self.gradients_in: tuple[Tensor | None, ...] = (None,) * len(self.surface)

    def gradients(self, outputs: list[Tensor], given: list[Any], allow_unused: bool) -> tuple[Any, ...]:
        import candelabra.autograd as autograd

        wanted = [each for each in self.surface if each.requires_grad]
        recorded = [each for each in outputs if each.requires_grad]
        if not wanted or not recorded:
            return (None,) * len(self.surface)
        made = iter(
            autograd.grad(
                recorded,
                wanted,
                [each for each in given if each is not None],
                only_inputs=True,
                allow_unused=allow_unused,
            )
        )
        return tuple(next(made) if each.requires_grad else None for each in self.surface)

    def warm_up(self, times: int, allow_unused: bool) -> None:
        import candelabra

        for _ in range(times):
            outputs, _ = _leaves(self.function(*self.arguments))
            self.gradients(
                outputs, [candelabra.empty_like(each) if each.requires_grad else None for each in outputs], allow_unused
            )

    def record_forward(self, pool: tuple[int, int]) -> None:
        with graph(self.forward, pool):
            results = self.function(*self.arguments)
        self.outputs, self.build = _leaves(results)

    def record_backward(self, pool: tuple[int, int], allow_unused: bool) -> None:
        import candelabra

        self.gradients_out = [candelabra.empty_like(each) if each.requires_grad else None for each in self.outputs]
        if any(each is not None for each in self.gradients_out) and any(each.requires_grad for each in self.surface):
            with graph(self.backward, pool):
                self.gradients_in = self.gradients(self.outputs, self.gradients_out, allow_unused)

    def callable(self) -> Callable[..., Any]:
        import candelabra.autograd as autograd

        recorded = self

        class Replayed(autograd.Function):
            """Copies arguments to where the recording has them, and replays it."""

            @staticmethod
            def forward(ctx: Any, *given: Tensor) -> tuple[Tensor, ...]:
                for kept, each in zip(recorded.inputs, given, strict=False):
                    if kept.data_ptr() != each.data_ptr():
                        kept.copy_(each)
                recorded.forward.replay()
                results = tuple(each.detach() for each in recorded.outputs)
                ctx.mark_non_differentiable(
                    *(result for result, each in zip(results, recorded.outputs, strict=True) if not each.requires_grad)
                )
                return results

            @staticmethod
            @autograd.function.once_differentiable
            def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
                for kept, each in zip(recorded.gradients_out, gradients, strict=True):
                    if kept is not None and kept.data_ptr() != each.data_ptr():
                        kept.copy_(each)
                recorded.backward.replay()
                return tuple(each if each is None else each.detach() for each in recorded.gradients_in)

        def replayed(*arguments: Any) -> Any:
            given, _ = _leaves(arguments)
            if len(given) != len(recorded.inputs):
                raise TypeError(f"the recorded function takes {len(recorded.inputs)} tensors, but got {len(given)}")
            return recorded.build(list(Replayed.apply(*given, *recorded.parameters)))

        return replayed


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Return functions or modules that run as recorded graphs, with their gradients.

    Results lie in the memory of the recording: the next call writes over them. They have no second
    derivatives.

    Parameters
    ----------
    callables : callable, Module, or tuple of them
        Of tensors; several in the order in which they will be called. Modules keep their parameters
        where they are, and have no hooks yet.
    sample_args : tuple, or tuple of tuples
        For each its arguments: tensors, also in tuples, lists and dicts, of the sizes, dtypes,
        devices and ``requires_grad`` that it will be called with. They become the memory of the
        recording.
    num_warmup_iters : int
        How often each is called, with its gradients, before it is recorded.
    allow_unused_input : bool
        Whether arguments and parameters may have no gradient; else that is an error.
    pool : tuple, optional
        See `graph`.

    Returns
    -------
    callable, Module, or tuple of them
        A function that copies its arguments to those of the recording and replays; a module itself,
        whose ``forward`` does so as long as its ``training`` is what it was.

    Raises
    ------
    RuntimeError
        When a module has hooks or buffers that require grad, when an input has no gradient, or when
        autocast keeps what it casts (``cache_enabled=False`` keeps nothing).
    TypeError
        When an argument is no tensor.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     x = candelabra.ones(3, device="cuda", requires_grad=True)
    ...     double = candelabra.cuda.make_graphed_callables(lambda x: 2 * x, (x,))
    ...     double(x).sum().backward()
    """
    from candelabra.amp import is_autocast_cache_enabled, is_autocast_enabled

    if is_autocast_enabled("cuda") and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    is_one = not isinstance(callables, tuple)
    functions = (callables,) if is_one else callables
    samples = (sample_args,) if is_one else sample_args
    if len(functions) != len(samples):
        raise ValueError(f"make_graphed_callables(): {len(functions)} callables, but sample_args for {len(samples)}")
    all_recorded = [
        _Recorded(function, tuple(arguments)) for function, arguments in zip(functions, samples, strict=True)
    ]

    synchronize()
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side):
        for recorded in all_recorded:
            recorded.warm_up(num_warmup_iters, allow_unused_input)
    current_stream().wait_stream(side)
    synchronize()

    shared = graph_pool_handle() if pool is None else pool
    for recorded in all_recorded:
        recorded.record_forward(shared)
    # In the order in which they will run: the memory of one's results is given to the next only
    # when nobody needs it any more.
    for recorded in reversed(all_recorded):
        recorded.record_backward(shared, allow_unused_input)
    if pool is None:  # the graphs hold it now
        Pool.known[shared].release()

    results = tuple(_as_called(recorded) for recorded in all_recorded)
    return results[0] if is_one else results


def _as_called(recorded: _Recorded) -> Any:
    """Return the function of a recording, or its module with that function as ``forward``."""
    replayed, module = recorded.callable(), recorded.function
    if not (hasattr(module, "parameters") and hasattr(module, "forward")):
        return replayed
    was_training, plain = module.training, module.forward

    def forward(*arguments: Any) -> Any:
        return (replayed if module.training == was_training else plain)(*arguments)

    module.forward = forward
    return module
