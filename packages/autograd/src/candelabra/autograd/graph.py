"""Looking at the tape, and hooks on the tensors it keeps."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import Tensor

from .hooks import RemovableHandle, node_hooks, register_hook
from .node import Node, SingleNode, next_sequence, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class GradientEdge(NamedTuple):
    """A place on the tape: a node and the number of its result."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Give the place on the tape where the gradient of a tensor arrives.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(1, requires_grad=True)
    >>> candelabra.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*resolve(tensor._edge))


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count a change of a tensor's memory that the library did not see, so that saved tensors
    notice it.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(1)
    >>> before = x._version
    >>> candelabra.autograd.graph.increment_version(x)
    >>> x._version - before
    1
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        one._bump_version()


class _Packing(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]] = []
        self.refusal: str | None = None


_packing = _Packing()
_users = 0
_lock = threading.Lock()


class _Packed(NamedTuple):
    value: Any
    unpack: Callable[[Any], Tensor]


def pack(tensor: Tensor) -> _Packed | None:
    """Pass a tensor that is to be kept through the innermost hook, or give None where there is
    none.
    """
    if not _packing.stack:
        return None
    if _packing.refusal is not None:
        raise RuntimeError(_packing.refusal)
    pack_hook, unpack_hook = _packing.stack[-1]
    with candelabra.no_grad():
        return _Packed(pack_hook(tensor._detached() if tensor.grad_fn is not None else tensor), unpack_hook)


def unpack(packed: _Packed) -> Tensor:
    """Get a kept tensor back from its hook."""
    tensor = packed.unpack(packed.value)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    return tensor


def _recorder_with_packing(record: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an autograd function: what its node keeps goes through the hooks, and back when the node
    is walked over.
    """

    def packing(result: Any, *arguments: Any) -> Any:
        recorded = record(result, *arguments)
        if _packing.stack and not transformation_depth():
            first = recorded[0] if isinstance(recorded, tuple) else recorded
            if first.grad_fn is not None:
                _pack_node(first.grad_fn)
        return recorded

    return packing


def _pack_node(node: Node) -> None:
    saved = getattr(node, "_saved", None)
    if not isinstance(saved, tuple) or not any(isinstance(entry, Tensor) for entry in saved):
        return
    entries: list[Any] = []
    for entry in saved:
        entries.append(pack(entry) if isinstance(entry, Tensor) else entry)
    histories = [history_of(entry) if isinstance(entry, Tensor) else None for entry in saved]
    node._saved = tuple(entries)

    # Takes the node, and does not hold it: the two would be a cycle.
    def prepare(node: Node) -> None:
        packed = node._saved
        if packed is None:
            return
        restored: list[Any] = list(packed)
        for position, entry in enumerate(packed):
            if isinstance(entry, _Packed):
                tensor = reconnected(unpack(entry), histories[position])
                restored[position] = tensor
                # The version is that of the tensor that came back: the hook answers for its
                # contents.
                if position + 1 < len(restored) and restored[position + 1] is not None:
                    restored[position + 1] = tensor._version
        node._saved = tuple(restored)

    node_hooks(node).prepare = prepare


class Restored(SingleNode):
    """The history of a leaf's value that came back from a hook: its gradient is the leaf's."""

    __slots__ = ()

    def backward(self, grad: Tensor) -> Tensor:
        return grad


def history_of(tensor: Tensor) -> Any:
    """Note the place on the tape of a tensor that is packed: its node and number, the leaf itself,
    or None.
    """
    if not tensor.requires_grad:
        return None
    return tensor if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


def reconnected(tensor: Tensor, history: Any) -> Tensor:
    """Give a tensor that came back from a hook the place on the tape it was packed at, where
    gradients are recorded.
    """
    if history is None or tensor is history or not candelabra.is_grad_enabled():
        return tensor
    tensor = tensor._detached()
    if isinstance(history, tuple):
        tensor._set_history(*history)
        return tensor
    node = Restored()
    node._sequence, node._hooks, node._edge = next_sequence(), None, history
    tensor._set_history(node)
    return tensor


def transformation_depth() -> int:
    """Tell how many transformations of functions are being applied: what their tapes keep does not
    go through hooks.
    """
    from .transforms.levels import _state

    return _state.depth


class saved_tensors_hooks:
    """Within the block, tensors that the tape keeps go through `pack_hook`, and come back through
    `unpack_hook`.

    Parameters
    ----------
    pack_hook
        Gets a tensor and returns anything; that is kept in the tensor's place.
    unpack_hook
        Gets what `pack_hook` returned, and returns a tensor of the same contents.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([2.0], requires_grad=True)
    >>> with candelabra.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: candelabra.tensor(values)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        global _users
        from .recording import enter_mode

        if _packing.refusal is not None:
            raise RuntimeError(_packing.refusal)
        if transformation_depth():
            raise RuntimeError("candelabra.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks.")
        with _lock:
            _users += 1
            if _users == 1:
                enter_mode(_recorder_with_packing)
        _packing.stack.append(self.hooks)

    def __exit__(self, *error: object) -> None:
        global _users
        from .recording import leave_mode

        _packing.stack.pop()
        with _lock:
            _users -= 1
            if _users == 0:
                leave_mode(_recorder_with_packing)


class save_on_cpu(saved_tensors_hooks):
    """Within the block, tensors that the tape keeps are kept on the CPU.

    Parameters
    ----------
    pin_memory
        Whether the copies are made in pinned memory, where the device has such.
    device_type
        Accepted for compatibility.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([3.0], requires_grad=True)
    >>> with candelabra.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_to_cpu(tensor: Tensor) -> tuple[Any, Tensor]:
            copy = tensor.to("cpu")
            return tensor.device, copy.pin_memory() if pin_memory else copy

        def unpack_from_cpu(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block, :class:`saved_tensors_hooks` raises a RuntimeError with this message.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with candelabra.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    ...
    RuntimeError: not here
    """
    if _packing.stack:
        raise RuntimeError(error_message)
    before, _packing.refusal = _packing.refusal, error_message
    try:
        yield
    finally:
        _packing.refusal = before


class _AllowMutationContext:
    """What :class:`allow_mutation_on_saved_tensors` gives: the copies that were made."""

    def __init__(self) -> None:
        #: By id of the storage: the handles of what is kept of it.
        self.kept: dict[int, list[_SavedHandle]] = {}

    def clear(self) -> None:
        """Forget all copies, and what could be copied."""
        for handles in self.kept.values():
            for handle in handles:
                handle.tensor = None
        self.kept.clear()

    def protect(self, tensor: Tensor) -> None:
        """Copy what is kept of a tensor's memory, which is about to be changed."""
        for handle in self.kept.pop(tensor.untyped_storage().data_ptr(), ()):
            if handle.tensor is not None:
                with candelabra.no_grad():
                    handle.tensor = handle.tensor.clone()


class _SavedHandle:
    __slots__ = ("context", "tensor")

    def __init__(self, tensor: Tensor, context: _AllowMutationContext) -> None:
        self.tensor: Tensor | None = tensor
        self.context: _AllowMutationContext | None = context


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationContext]:
    """Within the block, what the tape keeps may be changed in place: it is copied before, where it
    is.

    Both passes have to be in the block.

    Returns
    -------
    context manager
        Gives a context whose ``clear()`` forgets what was copied.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([2.0], requires_grad=True)
    >>> with candelabra.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y**2).sum()
    ...     _ = y.sin_()
    ...     z.backward()
    >>> x.grad
    tensor([4.])
    """
    from .transforms import levels

    context = _AllowMutationContext()

    def pack(tensor: Tensor) -> _SavedHandle:
        handle = _SavedHandle(tensor, context)
        context.kept.setdefault(tensor.untyped_storage().data_ptr(), []).append(handle)
        return handle

    def unpack(handle: _SavedHandle) -> Tensor:
        if handle.context is None:
            raise RuntimeError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded."
            )
        if handle.tensor is None:
            raise RuntimeError("what the tape kept was forgotten: clear() was called")
        return handle.tensor

    before = levels._state.observer

    def watch(operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        if out is not None:
            for tensor in levels.tensors_in((out,)):
                context.protect(tensor)
        if levels.changes_arguments(operator):
            changed = arguments if "!)[]" in operator.schema else arguments[:1]
            for tensor in levels.tensors_in(changed):
                context.protect(tensor)
        if before is not None:
            return before(operator, arguments, out, generator, record)
        return levels.pass_on(operator, arguments, out, generator, record)

    every: list[_SavedHandle] = []

    def pack_and_note(tensor: Tensor) -> _SavedHandle:
        handle = pack(tensor)
        every.append(handle)
        return handle

    with saved_tensors_hooks(pack_and_note, unpack):
        levels.set_observer(watch)
        try:
            yield context
        finally:
            levels.set_observer(before)
            for handle in every:
                handle.tensor = handle.context = None
            context.kept.clear()


class _Handles(RemovableHandle):
    """Removes several hooks at once."""

    __slots__ = ("handles",)

    def __init__(self, handles: list[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Have `fn` called once a backward pass has gradients of all of `tensors` (or of any of them).

    Parameters
    ----------
    tensors
        Tensors that require grad.
    fn
        Gets the list of gradients, None for a tensor that the walk does not come to; in mode
        ``"any"`` the first gradient that is computed.
    mode
        ``"all"`` or ``"any"``.

    Raises
    ------
    ValueError
        If the mode is another.

    Examples
    --------
    >>> import candelabra
    >>> x, y = candelabra.ones(1, requires_grad=True), candelabra.ones(1, requires_grad=True)
    >>> handle = candelabra.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * 2 + y).backward()
    [tensor([2.]), tensor([1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of 'all', 'any' but got {mode!r}")
    from .engine import current_walk

    #: By walk: what has arrived, and how many gradients are to be expected.
    state: list[Any] = [None, [], 0, 0]
    edges = [tensor._edge for tensor in tensors]

    def make(position: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            walk = current_walk()
            assert walk is not None
            if state[0] is None or state[0]() is not walk:
                expected = 1 if mode == "any" else sum(walk.reaches(edge) for edge in edges)
                state[:] = [weakref.ref(walk), [None] * len(tensors), 0, expected]
            state[1][position] = grad
            state[2] += 1
            if state[2] == state[3]:
                if mode == "any":
                    fn(grad)
                else:
                    arrived, state[1] = state[1], []
                    fn(arrived)

        return hook

    return _Handles([register_hook(tensor, make(position)) for position, tensor in enumerate(tensors)])
