"""Hooks: functions called with gradients on their way.

Hooks on a tensor that a recorded operation made live on its node, those on a leaf in the leaf's
``_hooks``.
"""

from __future__ import annotations

import weakref
from itertools import count
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from .node import AccumulateGrad, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    Hook = Callable[..., Any]
    Hooks = dict[int, Hook]

_next_id = count().__next__


class RemovableHandle:
    """Takes a hook away again: by ``remove()``, or at the end of a ``with`` block.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 2):
    ...     x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    __slots__ = ("__weakref__", "_hooks", "id")

    def __init__(self, hooks: Hooks) -> None:
        self._hooks: Hooks | None = hooks
        self.id = _next_id()

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        if self._hooks is not None:
            self._hooks.pop(self.id, None)
            self._hooks = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register(hooks: Hooks, hook: Hook) -> RemovableHandle:
    """Enter `hook` into `hooks` and return what removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class NodeHooks:
    """The hooks of one node."""

    __slots__ = ("after", "before", "prepare", "retaining", "tensors")

    def __init__(self) -> None:
        #: Called with the node before anything else: unpacks saved tensors.
        self.prepare: Hook | None = None
        #: By number of the result: hooks of the tensor.
        self.tensors: dict[int, Hooks] = {}
        #: By number of the result: the tensor whose ``grad`` is kept.
        self.retaining: dict[int, Any] = {}
        self.before: Hooks = {}
        self.after: Hooks = {}


def node_hooks(node: Node) -> NodeHooks:
    """Give the hooks of a node, made where there are none yet."""
    if node._hooks is None:
        node._hooks = NodeHooks()
    return node._hooks


class LeafHooks:
    """The hooks of one leaf, and what else the tape notes about it."""

    __slots__ = ("_accumulate_node", "accumulated", "tensor")

    def __init__(self) -> None:
        self.tensor: Hooks = {}
        self.accumulated: Hooks = {}
        self._accumulate_node: Any = None

    def accumulate_node(self, leaf: Tensor) -> AccumulateGrad:
        """Give the node that stands for the leaf: the same one as long as somebody holds it, or it
        has hooks.
        """
        made = self.active_node()
        if made is None:
            made = AccumulateGrad(leaf)
            self._accumulate_node = weakref.ref(made)
        return made

    def active_node(self) -> AccumulateGrad | None:
        """Give the leaf's node if there is one."""
        made = self._accumulate_node
        return made() if isinstance(made, weakref.ref) else made

    def hold(self, node: AccumulateGrad) -> None:
        """Keep the leaf's node from now on."""
        self._accumulate_node = node


def leaf_hooks(leaf: Tensor) -> LeafHooks:
    """Give the hooks of a leaf, made where there are none yet."""
    hooks = leaf._hooks
    if hooks is None:
        hooks = leaf._hooks = LeafHooks()
    return hooks


def hook_name(hook: Hook) -> str:
    """Name of a hook for messages."""
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
    """Call a node's hook; it may replace `gradients`."""
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


# ---- methods of Tensor


def register_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Have ``hook(grad)`` called each time a gradient of this tensor is computed.

    Parameters
    ----------
    hook
        Gets the gradient, a tensor of this tensor's sizes. It may return another of the same sizes
        to be used in its place; it should not change its argument.

    Returns
    -------
    RemovableHandle
        Its ``remove()`` takes the hook away.

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
    """Have ``hook(tensor)`` called after a backward pass added to this leaf's ``grad``.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad, or is no leaf.

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
    """Have backward passes set this tensor's ``grad``, though it is no leaf. Does nothing for a
    leaf.

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
    """Move ``retain_grad`` of a tensor that was changed in place from the node it had `before` to
    its present one.
    """
    if before is not None and before._hooks is not None:
        before._hooks.retaining.pop(number, None)
    node_hooks(tensor.grad_fn).retaining[tensor.output_nr] = weakref.ref(tensor)


def set_retained(reference: Any, grad: Tensor) -> None:
    """Set the ``grad`` of a tensor that retains it."""
    tensor = reference()
    if tensor is None:
        return
    if tensor.grad is None:
        tensor.grad = grad if candelabra.is_grad_enabled() else grad.clone()
    else:
        tensor.grad = tensor.grad + grad
