"""Gradient hooks.

Hooks on a non-leaf tensor are stored on its node. Hooks on a leaf are stored in ``leaf._hooks``.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor
from candelabra import hooks as handles

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra._C import GradientSlot

    from .graph import Restoring
    from .node import AccumulateGrad, Node

    Hook = Callable[..., Any]
    Hooks = dict[int, Hook]


class RemovableHandle(handles.RemovableHandle):
    """A handle that removes a hook with ``remove()`` or at the end of a ``with`` block.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 2):
    ...     x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, hooks: Hooks) -> None:
        # The dictionaries of nodes and leaves are plain ones, which have no weak references.
        self._hooks: Hooks | None = hooks
        self._take_number()

    def remove(self) -> None:
        """Remove the hook; repeated calls do nothing."""
        if self._hooks is not None:
            self._hooks.pop(self.id, None)
            self._hooks = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register(hooks: Hooks, hook: Hook) -> RemovableHandle:
    """Add `hook` to `hooks` and return its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class NodeHooks:
    """The hooks of one node."""

    __slots__ = ("after", "before", "prepare", "retaining", "tensors")

    def __init__(self) -> None:
        #: Called with the node before its backward function; unpacks saved tensors.
        self.prepare: Restoring | None = None
        #: By output number: the hooks of that output.
        self.tensors: dict[int, Hooks] = {}
        #: By output number: the tensor that retains its ``grad``.
        self.retaining: dict[int, Any] = {}
        self.before: Hooks = {}
        self.after: Hooks = {}


def node_hooks(node: Node) -> NodeHooks:
    """Return the hooks of a node, created on first use."""
    if node._hooks is None:
        node._hooks = NodeHooks()
    return node._hooks


class LeafHooks:
    """The hooks of one leaf, its slots in gradient buckets, and its AccumulateGrad node."""

    __slots__ = ("_accumulate_node", "accumulated", "slots", "tensor")

    def __init__(self) -> None:
        self.tensor: Hooks = {}
        self.accumulated: Hooks = {}
        #: Take the gradient after the hooks have seen it.
        self.slots: tuple[GradientSlot, ...] = ()
        self._accumulate_node: Any = None

    def active_node(self) -> AccumulateGrad | None:
        """Return the leaf's node if it exists."""
        made = self._accumulate_node
        return made() if isinstance(made, weakref.ref) else made

    def refer(self, node: AccumulateGrad) -> None:
        """Remember the leaf's node while others reference it."""
        self._accumulate_node = weakref.ref(node)

    def hold(self, node: AccumulateGrad) -> None:
        """Keep the leaf's node alive from now on."""
        self._accumulate_node = node


def leaf_hooks(leaf: Tensor) -> LeafHooks:
    """Return the hooks of a leaf, created on first use."""
    hooks = leaf._hooks
    if hooks is None:
        hooks = leaf._hooks = LeafHooks()
    return hooks


def add_slot(leaf: Tensor, slot: GradientSlot) -> None:
    """Let a slot of gradient buckets take the leaf's complete gradients, after all hooks."""
    hooks = leaf_hooks(leaf)
    hooks.slots = (*hooks.slots, slot)


def hook_name(hook: Hook) -> str:
    """Return the name of a hook for error messages."""
    return getattr(hook, "__name__", type(hook).__name__)


def call_tensor_hooks(hooks: Hooks, grad: Tensor) -> Tensor:
    """Pass a gradient through the hooks of its tensor."""
    for hook in tuple(hooks.values()):
        replaced = hook(grad)
        if replaced is None:
            continue
        if not isinstance(replaced, Tensor):
            raise TypeError(f"hook '{hook_name(hook)}' has to return a Tensor or None, not {type(replaced).__name__}")
        if replaced.shape != grad.shape:
            raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")
        if replaced.dtype is not grad.dtype:
            raise RuntimeError(
                f"hook '{hook_name(hook)}' has changed the type of value (was {grad.dtype} got {replaced.dtype})"
            )
        if replaced.device != grad.device:
            raise RuntimeError(
                f"hook '{hook_name(hook)}' has changed the device of value (was {grad.device} got {replaced.device})"
            )
        grad = replaced
    return grad


def call_node_hook(hook: Hook, gradients: tuple[Any, ...], *others: Any) -> tuple[Any, ...]:
    """Call a node hook, which may replace `gradients`."""
    replaced = hook(gradients, *others)
    if replaced is None:
        return gradients
    if isinstance(replaced, Tensor):
        replaced = (replaced,)
    if not isinstance(replaced, tuple):
        raise TypeError(
            f"hook '{hook_name(hook)}' has to return a tuple of Tensors or None, not {type(replaced).__name__}"
        )
    if len(replaced) != len(gradients):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(replaced)}, but expected {len(gradients)})"
        )
    return replaced


# ---- Tensor methods


def register_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call ``hook(grad)`` each time a gradient of this tensor is computed.

    Parameters
    ----------
    hook
        Takes the gradient. It may return a replacement with the same shape. It should not
        modify its argument.

    Returns
    -------
    RemovableHandle
        Call its ``remove()`` to remove the hook.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 3)
    >>> x.sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = self.grad_fn
    if node is None:
        return register(leaf_hooks(self).tensor, hook)
    return register(node_hooks(node).tensors.setdefault(self.output_nr, {}), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call ``hook(tensor)`` after a backward pass accumulates into this leaf's ``grad``.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad, or is not a leaf.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
    >>> x.sum().backward()
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return register(leaf_hooks(self).accumulated, hook)


def retain_grad(self: Tensor) -> None:
    """Make backward passes set this non-leaf tensor's ``grad``; do nothing for a leaf.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = self.grad_fn
    if node is None or self.retains_grad:
        return
    node_hooks(node).retaining[self.output_nr] = weakref.ref(self)
    self.retains_grad = True


def keep_retaining(tensor: Tensor, before: Node | None, number: int) -> None:
    """Move ``retain_grad`` from node `before` to the current node of a tensor changed in place."""
    if before is not None and before._hooks is not None:
        before._hooks.retaining.pop(number, None)
    node_hooks(tensor.grad_fn).retaining[tensor.output_nr] = weakref.ref(tensor)


def set_retained(reference: Any, grad: Tensor) -> None:
    """Set the ``grad`` of a tensor that retains its gradient."""
    tensor = reference()
    if tensor is None:
        return
    if tensor.grad is None:
        tensor.grad = grad if candelabra.is_grad_enabled() else grad.clone()
    else:
        tensor.grad = tensor.grad + grad
