"""The engine: walks the tape back from results to leaves.

Of the nodes that have a gradient waiting, the one made last is next (see :mod:`.node`); nothing that was made after it can add to its
gradient any more. The numbers of waiting nodes are in a heap; a straight chain of nodes is followed without it. Nothing recurses, so
the tape may be as long as memory allows.
"""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from . import hooks as tape_hooks
from .anomaly import check_gradients, is_anomaly_enabled, report_failure, tell_where
from .fitting import fit, like
from .node import AccumulateGrad, Edge, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .graph import GradientEdge

# References that a gradient has inside take_gradient when nobody outside of the engine holds it: the caller's variable, the
# parameter, and getrefcount's own argument.
_HELD_BY_ENGINE = 3


class _Census:
    """Stands before all waiting nodes once a leaf with hooks was reached: the edges that still lead to such leaves are counted then."""

    _hooks = ()


#: Its number: before that of any node.
_FIRST = -(1 << 62)


class Walk:
    """One walk over the tape."""

    __slots__ = (
        "__weakref__",
        "anomaly",
        "captures",
        "create_graph",
        "expected",
        "free",
        "heap",
        "late",
        "needed",
        "pending",
        "roots",
    )

    def __init__(self, free: bool, create_graph: bool) -> None:
        self.free = free
        self.create_graph = create_graph
        self.heap: list[int] = []
        #: By number of the node: the node, its gradient (a list of them for several results), whether the gradient is our own sum.
        self.pending: dict[int, list[Any]] = {}
        #: Leaves whose hooks have to see the whole gradient, by id: leaf and sum.
        self.late: dict[int, list[Any]] = {}
        #: By id of the leaf with hooks: how many edges to it are still to be walked over; None before they are counted.
        self.expected: dict[int, int] | None = None
        #: The edges that the walk began with.
        self.roots: list[Edge] = []
        #: Where given: gradients to be caught, by id of the leaf or by number of the node and result.
        self.captures: dict[Any, Any] | None = None
        #: Numbers of the nodes on the way to the captured ones.
        self.needed: dict[int, bool] | None = None
        self.anomaly = is_anomaly_enabled()

    def add(self, edge: Edge, grad: Tensor | None) -> None:
        """Add to the gradient that waits at the end of an edge."""
        if grad is None or edge is None:
            return
        if isinstance(edge, Tensor):
            self.reach_leaf(edge, grad)
            return
        if edge.__class__ is tuple:
            node, number = edge
        else:
            node, number = edge, 0
        key = node._sequence
        waiting = self.pending.get(key)
        if node._outputs == 1:
            if waiting is None:
                self.pending[key] = [node, grad, False]
                heappush(self.heap, key)
            elif waiting[2]:
                waiting[1].add_(grad)
            else:
                waiting[1] = waiting[1] + grad
                waiting[2] = not self.create_graph
        else:
            if waiting is None:
                waiting = self.pending[key] = [node, [None] * node._outputs, False]
                heappush(self.heap, key)
            old = waiting[1][number]
            waiting[1][number] = grad if old is None else old + grad

    def distribute(self, edges: tuple[Edge, ...], gradients: list[Any]) -> None:
        """Send gradients along edges; the list is emptied, so that nothing but the engine's variable holds them on arrival."""
        gradients.reverse()
        for edge in edges:
            part = gradients.pop()
            if part is not None:
                self.add(edge, part)
            elif self.expected is not None and isinstance(edge, Tensor):
                self.arrived(edge)

    def reach_leaf(self, leaf: Tensor, grad: Tensor) -> None:
        """Take a gradient that arrived at a leaf."""
        if self.captures is not None:
            if id(leaf) in self.captures:
                late = self.late.get(id(leaf))
                if late is None:
                    self.late[id(leaf)] = [leaf, grad]
                else:
                    late[1] = late[1] + grad
            return
        if leaf._hooks is not None:
            late = self.late.get(id(leaf))
            if late is None:
                self.late[id(leaf)] = [leaf, grad]
                if self.expected is None and _FIRST not in self.pending:
                    self.pending[_FIRST] = [_Census, None, False]
                    heappush(self.heap, _FIRST)
            else:
                late[1] = late[1] + grad
            if self.expected is not None:
                del grad
                self.arrived(leaf)
        else:
            take_gradient(leaf, grad, self.create_graph, _HELD_BY_ENGINE + 2)

    def arrived(self, leaf: Tensor) -> None:
        """Count an edge to a leaf as walked over; the last one makes its gradient whole."""
        assert self.expected is not None
        left = self.expected.get(id(leaf))
        if left is None:
            return
        self.expected[id(leaf)] = left - 1
        if left == 1 and id(leaf) in self.late:
            self._finish_leaf(*self.late.pop(id(leaf)))

    def count_leaves(self) -> None:
        """Count the edges from all nodes still to be walked over to leaves with hooks; those without any have their whole gradient."""
        expected: dict[int, int] = {}
        seen = set()
        stack = [waiting[0] for waiting in self.pending.values()]
        while stack:
            node = stack.pop()
            if node._sequence in seen:
                continue
            seen.add(node._sequence)
            for edge in node.all_edges():
                if isinstance(edge, Tensor):
                    if edge._hooks is not None:
                        expected[id(edge)] = expected.get(id(edge), 0) + 1
                else:
                    following = _node_of(edge)
                    if following is not None and following._sequence not in seen:
                        stack.append(following)
        self.expected = expected
        for key in [key for key in self.late if not expected.get(key)]:
            self._finish_leaf(*self.late.pop(key))

    def run(self) -> None:
        """Walk until no gradient waits."""
        before = _C.set_grad_enabled(self.create_graph)
        outer, _current.walk = _current.walk, self
        try:
            self._run()
            for key in tuple(self.late):
                leaf, grad = self.late.pop(key)
                self._finish_leaf(leaf, grad)
        finally:
            _current.walk = outer
            _C.set_grad_enabled(before)

    def reaches(self, edge: Edge) -> bool:
        """Tell whether the walk comes to the place where an edge ends."""
        if self.needed is not None:
            return self.is_needed(edge)
        target = edge if isinstance(edge, Tensor) else _node_of(edge)
        seen = set()
        stack = list(self.roots)
        while stack:
            place = stack.pop()
            node = place if isinstance(place, Tensor) else _node_of(place)
            if node is target:
                return True
            if node is None or isinstance(node, Tensor) or node._sequence in seen:
                continue
            seen.add(node._sequence)
            stack.extend(node.all_edges())
        return False

    def _run(self) -> None:
        heap, pending, free, needed = self.heap, self.pending, self.free, self.needed
        create_graph = self.create_graph
        leaves_at_once = self.captures is None
        special = self.anomaly or needed is not None
        node: Any = None
        try:
            while heap:
                node, grad, _ = pending.pop(heappop(heap))
                while True:
                    if special or node._hooks is not None:
                        self._step(node, grad)
                        break
                    if not node._single:
                        edges = node._edges
                        parts = list(node.backward(grad, edges))
                        if free:
                            node._saved = None
                        grad = None
                        self.distribute(edges, parts)
                        break
                    grad = node.backward(grad)
                    if free:
                        node._saved = None
                    if grad is None:
                        break
                    edge = node._edge
                    if isinstance(edge, Tensor):
                        if leaves_at_once and edge._hooks is None:
                            take_gradient(edge, grad, create_graph, _HELD_BY_ENGINE)
                        else:
                            self.reach_leaf(edge, grad)
                        break
                    if heap or edge.__class__ is tuple or edge._outputs != 1:
                        self.add(edge, grad)
                        break
                    node = edge
        except Exception as error:
            tell_where(error, node)
            raise

    def _step(self, node: Node, grad: Any) -> None:
        """Walk over one node with all that may be asked: hooks, captured gradients, pruned edges, anomaly detection."""
        if node is _Census:
            self.count_leaves()
            return
        several = node._outputs > 1
        arrived = list(grad) if several else [grad]
        hooks = node._hooks
        if hooks is not None:
            for number, of_tensor in hooks.tensors.items():
                if arrived[number] is not None:
                    arrived[number] = tape_hooks.call_tensor_hooks(of_tensor, arrived[number])
            for number, reference in hooks.retaining.items():
                if arrived[number] is not None:
                    tape_hooks.set_retained(reference, arrived[number])
        if self.captures is not None:
            for number, part in enumerate(arrived):
                if (node._sequence, number) in self.captures:
                    self.captures[node._sequence, number] = part
        edges = node.all_edges()
        if self.needed is not None:
            edges = tuple(edge if self.is_needed(edge) else None for edge in edges)
            if not any(edge is not None for edge in edges):
                return
        if hooks is not None:
            for hook in tuple(hooks.before.values()):
                arrived = list(tape_hooks.call_node_hook(hook, tuple(arrived)))
            if hooks.prepare is not None:
                hooks.prepare()
        gradient = arrived if several else arrived[0]
        try:
            made = (node.backward(gradient),) if node._single else node.backward(gradient, edges)
        except Exception:
            if self.anomaly:
                report_failure(node)
            raise
        if self.anomaly:
            check_gradients(node, made)
        if self.free:
            node._saved = None
        if hooks is not None:
            for hook in tuple(hooks.after.values()):
                made = tape_hooks.call_node_hook(hook, tuple(made), tuple(arrived))
        arrived.clear()
        gradient = None
        parts = list(made)
        del made
        self.distribute(edges, parts)

    def is_needed(self, edge: Edge) -> bool:
        """Whether a captured gradient lies behind this edge."""
        if edge is None:
            return False
        if isinstance(edge, Tensor):
            return self.captures is not None and id(edge) in self.captures
        if edge.__class__ is tuple:
            edge = edge[0]
        return self.needed is None or self.needed.get(edge._sequence, False)

    def _finish_leaf(self, leaf: Tensor, grad: Tensor) -> None:
        """Take the whole gradient of a leaf with hooks, or of a captured one."""
        of_leaf = leaf._hooks
        if of_leaf is not None:
            grad = tape_hooks.call_tensor_hooks(of_leaf.tensor, grad)
        if self.captures is not None:
            self.captures[id(leaf)] = grad
            return
        accumulate = of_leaf.active_node()
        if accumulate is not None:
            for hook in tuple(accumulate.before.values()):
                (grad,) = tape_hooks.call_node_hook(hook, (grad,))
        take_gradient(leaf, grad, self.create_graph, _HELD_BY_ENGINE + 1)
        _accumulated(leaf, of_leaf)
        if accumulate is not None:
            for hook in tuple(accumulate.after.values()):
                tape_hooks.call_node_hook(hook, (), (grad,))

    def find_needed(self, roots: Sequence[Edge], targets: set[int]) -> None:
        """Find the nodes on the way from the roots to captured leaves and to the nodes whose numbers are in `targets`."""
        needed: dict[int, bool] = {}
        self.needed = needed
        captures = self.captures or {}
        stack: list[tuple[Node, bool]] = [(edge, False) for edge in map(_node_of, roots) if edge is not None]
        while stack:
            node, done = stack.pop()
            key = node._sequence
            if done:
                needed[key] = any(
                    id(edge) in captures if isinstance(edge, Tensor) else edge is not None and needed[_node_of(edge)._sequence]
                    for edge in node.all_edges()
                ) or key in targets  # fmt: skip
            elif key not in needed:
                needed[key] = False
                stack.append((node, True))
                for edge in node.all_edges():
                    following = _node_of(edge)
                    if following is not None and following._sequence not in needed:
                        stack.append((following, False))


class _Current(threading.local):
    walk: Walk | None = None


_current = _Current()


def current_walk() -> Walk | None:
    """Give the walk that this thread is doing."""
    return _current.walk


def _node_of(edge: Edge) -> Any:
    if edge is None or isinstance(edge, Tensor):
        return None
    return edge[0] if edge.__class__ is tuple else edge


def take_gradient(leaf: Tensor, grad: Tensor, create_graph: bool, held: int) -> None:
    """Add a gradient to ``leaf.grad``; the first one becomes it, without a copy where nobody else can see it.

    Parameters
    ----------
    leaf, grad
        The tensor, and what arrived there.
    create_graph
        Whether the gradient itself is on the tape: then nothing is done in place.
    held
        References to `grad` that the engine itself accounts for; 0 to always copy.
    """
    old = leaf._grad
    if old is not None:
        if create_graph or old.requires_grad:
            leaf.grad = old + grad
        else:
            old.add_(grad)
    elif create_graph:
        leaf.grad = grad.clone()
    elif getrefcount(grad) <= held and grad._is_exclusive(leaf):
        leaf.grad = grad
    else:
        own = candelabra.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device) if _is_dense(leaf) else None
        leaf.grad = grad.clone(memory_format=candelabra.contiguous_format) if own is None else own.copy_(grad)


def _is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill a block of memory without gaps and overlaps, in any order of dimensions."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def walk_back(
    roots: Sequence[tuple[Edge, Tensor]],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
) -> list[Tensor | None] | None:
    """Walk back from `roots`, pairs of an edge and the gradient that arrives there.

    Returns
    -------
    list of Tensor, or None
        The gradients of `inputs` (tensors or gradient edges); without them leaves have been given their gradients.
    """
    walk = Walk(not retain_graph, create_graph)
    if inputs is None:
        for edge, grad in roots:
            walk.roots.append(edge)
            walk.add(edge, grad)
        del edge, grad, roots
        walk.run()
        return None
    keys = [_key_of(edge_of(one)) for one in inputs]
    walk.captures = dict.fromkeys(keys)
    walk.find_needed([edge for edge, _ in roots], {key[0] for key in keys if isinstance(key, tuple)})
    for edge, grad in roots:
        walk.add(edge, grad)
    walk.run()
    return [walk.captures[key] for key in keys]


def edge_of(place: Any) -> Edge:
    """Give the edge that a tensor or a :class:`~.graph.GradientEdge` means."""
    if isinstance(place, Tensor):
        return place._edge
    node, number = place
    if isinstance(node, AccumulateGrad):
        return node.variable
    return node if number == 0 else (node, number)


def _key_of(edge: Edge) -> Any:
    """Say under which name a gradient that arrives at an edge is caught."""
    if isinstance(edge, Tensor):
        return id(edge)
    return (edge[0]._sequence, edge[1]) if edge.__class__ is tuple else (edge._sequence, 0)


def _is_gradient_edge(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "output_nr")


def first_gradient(number: int, tensor: Tensor, grad: Any, batched: bool = False) -> Tensor:
    """Check the gradient that the caller gave for a root, or make the ones that stand for none."""
    if grad is None:
        if tensor.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}")
        if tensor.is_complex():
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}")
        return candelabra.ones_like(tensor.detach())
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad.shape != tensor.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {grad.shape} and output[{number}] has a shape of {tensor.shape}."
        )
    if grad.is_complex() != tensor.is_complex():
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{number}] has a dtype of {grad.dtype} and output[{number}] has a dtype of {tensor.dtype}."
        )
    return grad if grad.dtype is tensor.dtype and grad.device == tensor.device else fit(grad, like(tensor))


def _sequence(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, Tensor) or values is None or _is_gradient_edge(values) else tuple(values)


def _roots(tensors: tuple[Any, ...], gradients: tuple[Any, ...]) -> list[tuple[Edge, Tensor]]:
    if len(tensors) != len(gradients):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    pairs = []
    for number, (tensor, grad) in enumerate(zip(tensors, gradients, strict=True)):
        if _is_gradient_edge(tensor):
            if grad is None:
                raise RuntimeError(
                    f"grad_outputs[{number}] has to be given: a gradient edge has no sizes that ones could be made of"
                )
            pairs.append((edge_of(tensor), grad))
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"element {number} of tensors has to be a Tensor, but got {type(tensor).__name__}")
        if grad is not None or tensor.requires_grad:
            pairs.append((tensor._edge, first_gradient(number, tensor, grad)))
        if not tensor.requires_grad:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
    return pairs


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Compute the sum of gradients of `tensors` with respect to the leaves they were made from, and add it to their ``grad``.

    Parameters
    ----------
    tensors
        What is differentiated.
    grad_tensors
        The vector in the vector-Jacobian product: one gradient of the same sizes for each of `tensors`; None stands for ones where a
        tensor has one element.
    retain_graph
        Whether the tape can be walked again; as `create_graph` by default.
    create_graph
        Whether the gradients are on the tape themselves, for gradients of gradients.
    grad_variables
        An old name of `grad_tensors`.
    inputs
        Only these get a gradient, leaves or not; all leaves by default.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad, has several elements and no gradient, or its tape was walked before.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> candelabra.autograd.backward([x * 2, x * 3], [candelabra.ones(2), candelabra.ones(2)])
    >>> x.grad
    tensor([5., 5.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    targets = None
    if inputs is not None:
        targets = _sequence(inputs)
        if not targets:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    several = _sequence(tensors)
    gradients = (None,) * len(several) if grad_tensors is None else _sequence(grad_tensors)
    roots = _roots(several, gradients)
    retain = create_graph if retain_graph is None else retain_graph
    if targets is None:
        walk_back(roots, retain, create_graph)
        return
    _check_targets(targets)
    computed = walk_back(roots, retain, create_graph, targets)
    assert computed is not None
    for target, grad in zip(map(_target_of, targets), computed, strict=True):
        if grad is not None:
            take_gradient(target, grad, create_graph, 0)
            of_leaf = target._hooks
            if of_leaf is not None and target.grad_fn is None:
                _accumulated(target, of_leaf)


def _check_targets(targets: tuple[Any, ...]) -> None:
    for target in targets:
        if isinstance(target, Tensor) and not target.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")


def _target_of(target: Any) -> Tensor:
    """Give the tensor that a gradient is added to."""
    if isinstance(target, Tensor):
        return target
    if isinstance(target.node, AccumulateGrad):
        return target.node.variable
    raise RuntimeError("backward(inputs=...): a gradient edge has to be that of a leaf, for only a tensor has a grad to add to")


def _accumulated(leaf: Tensor, of_leaf: Any) -> None:
    """Call the hooks of a leaf that took its gradient."""
    for hook in tuple(of_leaf.accumulated.values()):
        if hook(leaf) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Compute and return the sum of gradients of `outputs` with respect to `inputs`.

    Parameters
    ----------
    outputs
        What is differentiated: tensors, or places on the tape.
    inputs
        Tensors (or places on the tape), leaves or not, that `outputs` were made from.
    grad_outputs
        One gradient for each of `outputs`; None stands for ones where an output has one element.
    retain_graph
        Whether the tape can be walked again; as `create_graph` by default.
    create_graph
        Whether the gradients are on the tape themselves.
    only_inputs
        Has to be True.
    allow_unused
        Whether inputs that `outputs` do not depend on get None instead of an error; as `materialize_grads` by default.
    is_grads_batched
        Whether `grad_outputs` have one more dimension in front: the walk is done for all its entries at once, by
        :func:`candelabra.vmap`.
    materialize_grads
        Whether such inputs get zeros.

    Returns
    -------
    tuple
        One gradient for each of `inputs`.

    Raises
    ------
    RuntimeError
        If an output or an input does not require grad, or an input was not used.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor(3.0, requires_grad=True)
    >>> (first,) = candelabra.autograd.grad(x**3, x, create_graph=True)
    >>> candelabra.autograd.grad(first, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        raise ValueError("only_inputs=False is not supported: use candelabra.autograd.backward to accumulate into all leaves")
    roots, targets = _sequence(outputs), _sequence(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for number, target in enumerate(targets):
        if not isinstance(target, Tensor) and not _is_gradient_edge(target):
            raise TypeError(f"element {number} of inputs has to be a Tensor, but got {type(target).__name__}")
    gradients = (None,) * len(roots) if grad_outputs is None else _sequence(grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(roots, targets, gradients, retain, create_graph, allow_unused, materialize_grads)
    pairs = _roots(roots, gradients)
    _check_targets(targets)
    computed = walk_back(pairs, retain, create_graph, targets)
    assert computed is not None
    for number, part in enumerate(computed):
        if part is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {number} appears to not have been used in the graph (One of the differentiated "
                    "Tensors appears to not have been used in the graph). Set allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                if not isinstance(targets[number], Tensor):
                    raise RuntimeError("materialize_grads cannot be used with a GradientEdge input, whose sizes are not known")
                computed[number] = candelabra.zeros_like(targets[number].detach())
    return tuple(computed)


def _batched(
    roots: tuple[Any, ...], targets: tuple[Any, ...], gradients: tuple[Any, ...], retain: bool, create_graph: bool, allow_unused: bool,
    materialize: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Do what :func:`grad` does for all entries of the first dimension of `gradients` at once, by vmap."""
    size = None
    for number, (root, batch) in enumerate(zip(roots, gradients, strict=True)):
        if batch is None:
            continue
        if batch.ndim == 0 or batch.shape[1:] != root.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                "remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{number}] has a shape of {batch.shape} and output[{number}] has a shape of {root.shape}."
            )
        if size not in (None, batch.shape[0]):
            raise RuntimeError(f"grad_outputs have batches of different sizes: {size} and {batch.shape[0]}")
        size = batch.shape[0]
    if size is None:
        raise RuntimeError("is_grads_batched=True needs grad_outputs")
    from .func.batching import vmap

    places = [number for number, batch in enumerate(gradients) if batch is not None]
    used: list[bool] = []

    def one(*vectors: Tensor) -> tuple[Tensor, ...]:
        given = list(gradients)
        for place, vector in zip(places, vectors, strict=True):
            given[place] = vector
        made = grad(roots, targets, given, retain, create_graph, True, allow_unused, False, materialize)
        used[:] = [part is not None for part in made]
        return tuple(part for part in made if part is not None)

    columns = iter(vmap(one)(*(gradients[place] for place in places)))
    return tuple(next(columns) if part else None for part in used)


def backward_of_tensor(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Compute the gradient of this tensor with respect to the leaves it was made from, and add it to their ``grad``.

    Parameters
    ----------
    gradient
        The gradient of something further on with respect to this tensor, of its sizes; may be left out where it has one element.
    retain_graph, create_graph, inputs
        As in :func:`candelabra.autograd.backward`.

    Raises
    ------
    RuntimeError
        As in :func:`candelabra.autograd.backward`.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([1.0, 2.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if inputs is not None:
        backward((self,), (gradient,), retain_graph, create_graph, None, inputs)
        return
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    walk = Walk(not (create_graph if retain_graph is None else retain_graph), create_graph)
    edge = self._edge
    walk.roots.append(edge)
    walk.add(edge, first_gradient(0, self, gradient))
    walk.run()
