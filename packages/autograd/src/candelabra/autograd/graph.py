"""Inspect the autograd graph, and hook the tensors it saves."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import Tensor

from .engine import carried_settings
from .hooks import RemovableHandle, node_hooks, register_hook
from .node import FREED, Node, SingleNode, next_sequence, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class GradientEdge(NamedTuple):
    """A position in the autograd graph: a node and an output number."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the graph edge at which the gradient of a tensor arrives.

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
    """Increment the version counter of a tensor, after its memory changed outside the library.

    Saved tensors then detect the change.

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
carried_settings.append(_packing)
_users = 0
_lock = threading.Lock()


class _Packed(NamedTuple):
    value: Any
    unpack: Callable[[Any], Tensor]


def are_saved_tensors_hooks_enabled() -> bool:
    """Return whether :class:`saved_tensors_hooks` may be entered on this thread."""
    return _packing.refusal is None


def pack(tensor: Tensor) -> _Packed | None:
    """Pass a tensor to be saved through the innermost hook; return None without hooks."""
    if not _packing.stack:
        return None
    if _packing.refusal is not None:
        raise RuntimeError(_packing.refusal)
    return pack_with(tensor, *_packing.stack[-1])


def pack_with(tensor: Tensor, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> _Packed:
    """Return what a hook saves in a tensor's place."""
    given = tensor._detached() if tensor.grad_fn is not None else tensor
    before = given._version
    with candelabra.no_grad():
        made = _Packed(pack_hook(given), unpack_hook)
    if given._version != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by "
            "in-place operations as this can lead to unexpected side-effects: clone the tensor first."
        )
    return made


def unpack(packed: _Packed) -> Tensor:
    """Return a saved tensor from its unpack hook."""
    tensor = packed.unpack(packed.value)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    return tensor


def _autograd_function_with_packing(record: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an autograd function so that tensors its node saves pass through the hooks."""

    def packing(result: Any, *arguments: Any) -> Any:
        recorded = record(result, *arguments)
        if _packing.stack and not transformation_depth():
            first = recorded[0] if isinstance(recorded, tuple) else recorded
            if first.grad_fn is not None:
                _pack_node(first.grad_fn)
        return recorded

    return packing


class Restoring:
    """Restores the tensors of a node that hooks have packed: the hook `prepare` of the node.

    It must not reference the node, or the two would form a cycle.
    """

    __slots__ = ("histories",)

    def __init__(self) -> None:
        #: By position in what the node saves: the history of a tensor.
        self.histories: dict[int, Any] = {}

    def entry(self, node: Node, position: int) -> Any:
        """Return what a node has saved at a position."""
        entry = node._saved[position]
        return reconnected(unpack(entry), self.histories[position]) if isinstance(entry, _Packed) else entry

    def __call__(self, node: Node) -> Any:
        """Unpack all tensors in place; return what was there."""
        packed = node._saved
        if packed is None:
            return None
        restored: list[Any] = [self.entry(node, position) for position in range(len(packed))]
        for position, entry in enumerate(packed):
            # Use the version of the unpacked tensor; the hook is responsible for its contents.
            if isinstance(entry, _Packed) and position + 1 < len(packed) and packed[position + 1] is not None:
                restored[position + 1] = restored[position]._version
        node._saved = tuple(restored)
        return packed


def _pack_node(node: Node) -> None:
    saved = getattr(node, "_saved", None)
    if not isinstance(saved, tuple) or not any(isinstance(entry, Tensor) for entry in saved):
        return
    restoring = Restoring()
    restoring.histories = {
        position: history_of(entry) for position, entry in enumerate(saved) if isinstance(entry, Tensor)
    }
    node._saved = tuple([pack(entry) if isinstance(entry, Tensor) else entry for entry in saved])
    node_hooks(node).prepare = restoring


class SavedTensor:
    """A tensor that a node has saved, as ``node._raw_saved_self`` gives it.

    Parameters
    ----------
    node
        The node.
    position
        The position in what the node saves.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([2.0], requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda values: candelabra.tensor(values))
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    __slots__ = ("_node", "_position")

    def __init__(self, node: Node | None = None, position: int = 0) -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden: nodes have them, as grad_fn._raw_saved_self"
            )
        self._node, self._position = node, position

    def register_hooks(self, *hooks: Callable[[Any], Any]) -> None:
        """Pass the tensor through ``pack_hook`` now, and through ``unpack_hook`` when it is used.

        Parameters
        ----------
        hooks
            ``pack_hook`` and ``unpack_hook``, as of :class:`saved_tensors_hooks`.

        Raises
        ------
        RuntimeError
            If the tensor was freed, is None, or has hooks.
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError("register_hooks(): incompatible function arguments: expected pack_hook and unpack_hook")
        refused = "Calling register_hooks on a saved tensor"
        node, position = self._node, self._position
        if node._saved is None:
            raise RuntimeError(f"{refused} after it has been freed. {FREED}")
        tensor = self._tensor_of(node._saved[position])
        if tensor is _Packed:
            raise RuntimeError(f"{refused} whose hooks have already been set. Hint: only one pair of hooks is allowed.")
        if not isinstance(tensor, Tensor):
            raise RuntimeError(f"{refused} with value None is forbidden")
        packed = pack_with(tensor, *hooks)
        saved = list(node._saved)
        saved[position] = self._replaced(saved[position], packed, tensor)
        node._saved = tuple(saved)

    def _tensor_of(self, entry: Any) -> Any:
        return _Packed if isinstance(entry, _Packed) else entry

    def _replaced(self, entry: Any, packed: _Packed, tensor: Tensor) -> Any:
        """Return the node's entry for a packed tensor."""
        hooks = node_hooks(self._node)
        if hooks.prepare is None:
            hooks.prepare = Restoring()
        hooks.prepare.histories[self._position] = history_of(tensor)
        return packed


class SavedByFunction(SavedTensor):
    """A tensor that a custom function has saved: an entry is (kind, tensor, version)."""

    __slots__ = ()

    def _tensor_of(self, entry: Any) -> Any:
        return _Packed if entry[2] == "packed" else entry[1]

    def _replaced(self, entry: Any, packed: _Packed, tensor: Tensor) -> Any:
        own = isinstance(entry[0], int)
        return (entry[0], (packed, None if own else history_of(tensor)), "packed")


Node._saved_tensor = SavedTensor


class Restored(SingleNode):
    """The history of an unpacked leaf: gradients pass through to the leaf."""

    __slots__ = ()

    def backward(self, grad: Tensor) -> Tensor:
        return grad


def history_of(tensor: Tensor) -> Any:
    """Return the history of a tensor: (node, output number), the leaf itself, or None."""
    if not tensor.requires_grad:
        return None
    return tensor if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


def reconnected(tensor: Tensor, history: Any) -> Tensor:
    """Give an unpacked tensor the history it was packed with, if gradients are recorded."""
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
    """Return how many function transforms are active; their tapes ignore saved-tensor hooks."""
    from .functorch_layers import _state

    return _state.depth


class saved_tensors_hooks:
    """Pass tensors saved for backward through `pack_hook` and `unpack_hook` within the block.

    Parameters
    ----------
    pack_hook
        Takes a tensor and returns any object, which is saved in its place.
    unpack_hook
        Takes the object returned by `pack_hook` and returns a tensor with the same contents.

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
                enter_mode(_autograd_function_with_packing)
        _packing.stack.append(self.hooks)

    def __exit__(self, *error: object) -> None:
        global _users
        from .recording import leave_mode

        _packing.stack.pop()
        with _lock:
            _users -= 1
            if _users == 0:
                leave_mode(_autograd_function_with_packing)


class save_on_cpu(saved_tensors_hooks):
    """Move tensors saved for backward to the CPU within the block.

    Parameters
    ----------
    pin_memory
        Whether to copy to pinned memory.
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
    """Make :class:`saved_tensors_hooks` raise a RuntimeError with this message in the block.

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
    """The context of :class:`allow_mutation_on_saved_tensors`, which tracks saved tensors. The
    tape alone keeps the handles alive.
    """

    def __init__(self) -> None:
        #: The copies of saved tensors whose memory was changed.
        self.cloned: weakref.WeakKeyDictionary[_SavedHandle, Tensor] = weakref.WeakKeyDictionary()
        #: The handles by what they save: an address, a geometry and a version.
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, _SavedHandle] = weakref.WeakValueDictionary()
        #: By address of the storage: handles of the tensors saved from it.
        self._saved: dict[int, weakref.WeakSet[_SavedHandle]] = {}

    def pack(self, tensor: Tensor) -> _SavedHandle:
        """Return the handle of a saved tensor."""
        geometry = (tuple(tensor.shape), tensor.stride(), tensor.dtype)
        identity = (tensor.data_ptr(), *geometry, tensor._version, id(tensor.grad_fn))
        handle = self.tid_to_weakhandle.get(identity)
        if handle is None:
            handle = self.tid_to_weakhandle[identity] = _SavedHandle(tensor, self)
            self._saved.setdefault(tensor.untyped_storage().data_ptr(), weakref.WeakSet()).add(handle)
        return handle

    def clear(self) -> None:
        """Release the saved tensors."""
        for handles in self._saved.values():
            for handle in handles:
                handle.tensor = None
        self._saved.clear()
        self.cloned.clear()
        self.tid_to_weakhandle.clear()

    def protect(self, tensor: Tensor) -> None:
        """Clone the tensors saved from a tensor's storage, before the storage changes."""
        for handle in self._saved.pop(tensor.untyped_storage().data_ptr(), ()):
            if handle.tensor is not None:
                with candelabra.no_grad():
                    self.cloned[handle] = handle.tensor.clone()
                handle.tensor = None


class _SavedHandle:
    __slots__ = ("__weakref__", "context", "tensor")

    def __init__(self, tensor: Tensor, context: _AllowMutationContext) -> None:
        self.tensor: Tensor | None = tensor
        self.context = context

    def unpack(self) -> Tensor:
        """Return the saved tensor, or its copy."""
        tensor = self.context.cloned.get(self) if self.tensor is None else self.tensor
        # The type of the error is PyTorch's.
        assert tensor is not None, (
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded."
        )
        return tensor


class _Allowing(threading.local):
    context: _AllowMutationContext | None = None


_allowing = _Allowing()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationContext]:
    """Allow in-place changes of saved tensors within the block.

    A saved tensor is copied before its memory changes. Run both the forward and the backward pass
    within the block.

    Returns
    -------
    context manager
        Yields a context whose ``clear()`` releases the saved tensors that have not been copied.

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
    from . import functorch_layers

    if _allowing.context is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationContext()
    before = functorch_layers._state.observer

    def watch(operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        if out is not None:
            for tensor in functorch_layers.tensors_in((out,)):
                context.protect(tensor)
        if functorch_layers.changes_arguments(operator):
            changed = arguments if "!)[]" in operator.schema else arguments[:1]
            for tensor in functorch_layers.tensors_in(changed):
                context.protect(tensor)
        if before is not None:
            return before(operator, arguments, out, generator, record)
        return functorch_layers.pass_on(operator, arguments, out, generator, record)

    with saved_tensors_hooks(context.pack, _SavedHandle.unpack):
        functorch_layers.set_observer(watch)
        _allowing.context = context
        try:
            yield context
        finally:
            _allowing.context = None
            functorch_layers.set_observer(before)
            context.clear()


class _Handles(RemovableHandle):
    """A handle that removes several hooks at once."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once a backward pass has the gradients of all `tensors` (or of any of them).

    Parameters
    ----------
    tensors
        Tensors that require grad.
    fn
            In mode ``"all"``, takes a list of gradients, with None for each tensor that the
            backward pass does not reach. In mode ``"any"``, takes the first gradient that is
            computed.
    mode
        ``"all"`` or ``"any"``.

    Raises
    ------
    ValueError
        If the mode is not one of the two.

    Examples
    --------
    >>> import candelabra
    >>> x, y = candelabra.ones(1, requires_grad=True), candelabra.ones(1, requires_grad=True)
    >>> handle = candelabra.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * 2 + y).backward()
    [tensor([2.]), tensor([1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    from .engine import current_walk

    #: Weak reference to the backward pass, gradients so far, their number, and the expected number.
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
