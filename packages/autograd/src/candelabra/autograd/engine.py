"""The backward engine: traverses the tape from results to leaves.

The engine always processes the pending node that was created last (see :mod:`.node`). Its gradient
is complete, because only nodes created after it contribute to it. Sequence numbers of pending nodes
are kept in a heap; a straight chain of nodes bypasses the heap. The engine does not recurse, so
memory is the only limit on the length of the tape.
"""

from __future__ import annotations

import itertools
import threading
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from candelabra import _C, Tensor

from . import hooks as tape_hooks
from .anomaly import _state as _anomaly_settings
from .anomaly import check_gradients, is_anomaly_enabled, report_failure, tell_where
from .assembly import Assembly, PartNode, RecordedAssembly
from .leaves import HELD_BY_ENGINE, call_accumulated_hooks, take_gradient, take_part
from .node import AccumulateGrad, Edge, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .hooks import LeafHooks


class _Census:
    """A pseudo-node, queued before all others when a gradient reaches a leaf with hooks.

    When it runs, the engine counts the remaining edges to leaves with hooks.
    """

    _hooks = ()


#: Sequence number of the census, lower than that of any node.
_FIRST = -(1 << 62)


_numbers = itertools.count()

#: Backward passes within each other on one thread. Deeper ones run on a thread of their own, with
#: its own limit of recursion and stack.
_DEEPEST = 20


class Walk:
    """One backward pass over the tape."""

    __slots__ = (
        "__weakref__",
        "accumulates",
        "anomaly",
        "callbacks",
        "captures",
        "create_graph",
        "depth",
        "expected",
        "free",
        "heap",
        "late",
        "needed",
        "node",
        "number",
        "pending",
        "roots",
    )

    def __init__(self, free: bool, create_graph: bool) -> None:
        self.free = free
        #: Whether gradients that are captured are accumulated afterwards.
        self.accumulates = False
        self.number = next(_numbers)
        #: How many backward passes of this thread are around this one.
        self.depth = 0
        #: The node that calls a program's code, of those that do.
        self.node: Node | None = None
        self.create_graph = create_graph
        self.heap: list[int] = []
        #: By sequence number: the node, its gradient (a list for several results) and whether the
        #: engine owns the gradient. Owned gradients may be changed in place. None means that the
        #: gradient is an assembly of parts (see :mod:`.assembly`).
        self.pending: dict[int, list[Any]] = {}
        #: Leaves whose hooks need the complete gradient, by id: the leaf and the sum so far.
        self.late: dict[int, list[Any]] = {}
        #: By id of a leaf with hooks: the number of edges to it that are not yet traversed. None
        #: until :meth:`count_leaves` has run.
        self.expected: dict[int, int] | None = None
        #: The edges at which the backward pass starts.
        self.roots: list[Edge] = []
        #: Gradients to capture, or None. Keys: the id of a leaf, or a pair of sequence number and
        #: output number.
        self.captures: dict[Any, Any] | None = None
        #: By sequence number: whether the node leads to a captured gradient. None without captures.
        self.needed: dict[int, bool] | None = None
        self.anomaly = is_anomaly_enabled()
        #: What :func:`queue_callback` has queued.
        self.callbacks: list[Callable[[], object]] = []

    def add(self, edge: Edge, grad: Tensor | None) -> None:
        """Accumulate a gradient into the node or leaf at the end of an edge."""
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
            elif waiting[2] is None and not self.create_graph:
                waiting[1] = waiting[1].finish().add_(grad)
                waiting[2] = True
            elif waiting[2] is None:
                waiting[1] = waiting[1].finish() + grad
                waiting[2] = False
            else:
                waiting[1] = waiting[1] + grad
                waiting[2] = not self.create_graph
        else:
            if waiting is None:
                waiting = self.pending[key] = [node, [None] * node._outputs, False]
                heappush(self.heap, key)
            old = waiting[1][number]
            waiting[1][number] = grad if old is None else old + grad

    def add_part(self, node: PartNode, part: Tensor) -> None:
        """Accumulate the gradient of a partial view into the gradient of the full tensor."""
        edge = node._edge
        if isinstance(edge, Tensor):
            self.reach_leaf(edge, part, node)
            return
        if edge.__class__ is tuple or edge._outputs != 1:
            self.add(edge, node.place(part))
            return
        key = edge._sequence
        waiting = self.pending.get(key)
        if waiting is None:
            self.pending[key] = [edge, (RecordedAssembly if self.create_graph else Assembly)(node, part), None]
            heappush(self.heap, key)
        elif waiting[2] is None:
            waiting[1].add(node, part)
        elif self.create_graph:
            waiting[1] = waiting[1] + node.place(part)
        else:
            if not waiting[2]:
                waiting[1] = waiting[1].clone()
                waiting[2] = True
            node.look(waiting[1]).add_(part)

    def distribute(self, edges: tuple[Edge, ...], gradients: list[Any]) -> None:
        """Send gradients along edges.

        Empties the list, so that on arrival only the engine's variable references each gradient.
        """
        gradients.reverse()
        for edge in edges:
            part = gradients.pop()
            if part is not None:
                self.add(edge, part)
            elif self.expected is not None and isinstance(edge, Tensor):
                self.arrived(edge)

    def reach_leaf(
        self, leaf: Tensor, grad: Tensor, node: PartNode | None = None, held: int = HELD_BY_ENGINE + 2
    ) -> None:
        """Take a gradient that arrived at a leaf.

        If `node` is given, `grad` covers only the part of the leaf that the view shows. `held` is
        the number of references to `grad` held by the engine in :func:`.take_gradient`.
        """
        captures = self.captures
        captured = captures is not None
        if captures is not None and id(leaf) not in captures:
            return
        of_leaf = leaf._hooks
        if not captured and of_leaf is None:
            if node is None:
                take_gradient(leaf, grad, self.create_graph, held)
            else:
                take_part(leaf, node, grad, self.create_graph)
            return
        if not captured and node is None and self._is_last_edge(leaf, of_leaf):
            slots = of_leaf.slots
            if len(slots) == 1 and not of_leaf.accumulated and not self.create_graph and slots[0].take(grad, held):
                return
            take_gradient(leaf, grad, self.create_graph, held)
            call_accumulated_hooks(leaf, of_leaf)
            return
        late = self.late.get(id(leaf))
        if late is not None:
            late[1] = self._joined(late[1], grad, node)
        else:
            first: Any = grad if node is None else (RecordedAssembly if self.create_graph else Assembly)(node, grad)
            self.late[id(leaf)] = [leaf, first]
            if not captured and self.expected is None and _FIRST not in self.pending:
                self.pending[_FIRST] = [_Census, None, False]
                heappush(self.heap, _FIRST)
        if not captured and self.expected is not None:
            del grad
            first = None
            self.arrived(leaf)

    def _is_last_edge(self, leaf: Tensor, of_leaf: LeafHooks) -> bool:
        """Return whether the only edge to a leaf with post-accumulate hooks or slots is traversed
        now, and note it.
        """
        expected, key = self.expected, id(leaf)
        if expected is None or expected.get(key) != 1 or key in self.late:
            return False
        if of_leaf.tensor or of_leaf.active_node() is not None:
            return False
        expected[key] = 0
        return True

    def _joined(self, old: Any, grad: Tensor, node: PartNode | None) -> Any:
        """Return the sum of a leaf's gradient so far and a new one."""
        if node is None:
            return _whole(old) + grad
        if isinstance(old, Tensor):
            return old + node.place(grad)
        old.add(node, grad)
        return old

    def arrived(self, leaf: Tensor) -> None:
        """Count an edge to a leaf as traversed; after the last one, finish the leaf's gradient."""
        assert self.expected is not None
        left = self.expected.get(id(leaf))
        if left is None:
            return
        self.expected[id(leaf)] = left - 1
        if left == 1 and id(leaf) in self.late:
            self._finish_leaf(*self.late.pop(id(leaf)))

    def count_leaves(self) -> None:
        """Count the edges from all pending nodes to leaves with hooks.

        Leaves without remaining edges are finished at once.
        """
        expected = _C.count_leaf_edges([waiting[0] for waiting in self.pending.values()])
        self.expected = expected
        for key in [key for key in self.late if not expected.get(key)]:
            self._finish_leaf(*self.late.pop(key))

    def run(self) -> None:
        """Run until no node is pending."""
        outer = _current.walk
        if outer is not None:
            if outer.depth == _DEEPEST:
                _run_on_a_thread(self)
                return
            self.depth = outer.depth + 1
        if self.free and _C.is_recording():
            for node, *_ in self.pending.values():
                _C.note_backward(node)
        before = _C.set_grad_enabled(self.create_graph)
        # Gradients are computed on the values of subclasses: no override sees the formulas.
        overrides = _C.set_torch_function_state(2)
        _current.walk = self
        try:
            self._run()
            for key in tuple(self.late):
                leaf, grad = self.late.pop(key)
                self._finish_leaf(leaf, grad)
            # A callback may queue others.
            for callback in self.callbacks:
                callback()
        finally:
            _current.walk = outer
            _C.set_torch_function_state(overrides)
            _C.set_grad_enabled(before)

    def reaches(self, edge: Edge) -> bool:
        """Return whether the backward pass reaches the end of an edge."""
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
        accumulates_leaves = self.captures is None
        special = self.anomaly or needed is not None
        node: Any = None
        try:
            while heap:
                node, grad, own = pending.pop(heappop(heap))
                if own is None:
                    grad = grad.finish()
                while True:
                    if special or node._hooks is not None:
                        self._step(node, grad)
                        break
                    if not node._single:
                        if node._is_part:
                            self.add_part(node, grad)
                            break
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
                        if accumulates_leaves and edge._hooks is None:
                            take_gradient(edge, grad, create_graph, HELD_BY_ENGINE)
                        else:
                            self.reach_leaf(edge, grad, None, HELD_BY_ENGINE + 1)
                        break
                    if heap or edge.__class__ is tuple or edge._outputs != 1:
                        self.add(edge, grad)
                        break
                    node = edge
        except Exception as error:
            tell_where(error, node)
            raise

    def _step(self, node: Node, grad: Any) -> None:
        """Process one node on the slow path: hooks, captures, pruned edges, anomaly detection."""
        if node is _Census:
            self.count_leaves()
            return
        several = node._outputs > 1
        arrived = list(grad) if several else [grad]
        hooks = node._hooks
        packed = None
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
        is_last = False
        if self.needed is not None:
            edges = tuple(edge if self.is_needed(edge) else None for edge in edges)
            is_last = not any(edge is not None for edge in edges)
            if is_last and not self.accumulates:
                return
        if hooks is not None:
            for hook in tuple(hooks.before.values()):
                arrived = list(tape_hooks.call_node_hook(hook, tuple(arrived)))
        if is_last:
            return
        if hooks is not None and hooks.prepare is not None:
            self.node = node
            packed = hooks.prepare(node)
        gradient = arrived if several else arrived[0]
        if isinstance(node, PartNode) and hooks is None and not self.anomaly:
            self.add_part(node, arrived[0])
            return
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
        elif packed is not None:
            node._saved = packed
        if hooks is not None:
            for hook in tuple(hooks.after.values()):
                made = tape_hooks.call_node_hook(hook, tuple(made), tuple(arrived))
        arrived.clear()
        gradient = None
        parts = list(made)
        del made
        self.distribute(edges, parts)

    def is_needed(self, edge: Edge) -> bool:
        """Return whether a captured gradient is reachable through this edge."""
        if edge is None:
            return False
        if isinstance(edge, Tensor):
            return self.captures is not None and id(edge) in self.captures
        if edge.__class__ is tuple:
            edge = edge[0]
        return self.needed is None or self.needed.get(edge._sequence, False)

    def _finish_leaf(self, leaf: Tensor, grad: Tensor) -> None:
        """Store the complete gradient of a leaf with hooks or of a captured leaf."""
        grad = _whole(grad)
        of_leaf = leaf._hooks
        if of_leaf is not None:
            grad = tape_hooks.call_tensor_hooks(of_leaf.tensor, grad)
        accumulate = None if of_leaf is None else of_leaf.active_node()
        if accumulate is not None and (self.captures is None or self.accumulates):
            for hook in tuple(accumulate.before.values()):
                (grad,) = tape_hooks.call_node_hook(hook, (grad,))
        if self.captures is not None:
            self.captures[id(leaf)] = grad
            return
        take_gradient(leaf, grad, self.create_graph, HELD_BY_ENGINE + 1)
        call_accumulated_hooks(leaf, of_leaf)
        if accumulate is not None:
            for hook in tuple(accumulate.after.values()):
                tape_hooks.call_node_hook(hook, (), (grad,))

    def find_needed(self, roots: Sequence[Edge], targets: set[int]) -> None:
        """Find the nodes between the roots and the captured leaves and nodes.

        `targets` has the sequence numbers of the captured nodes.
        """
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


#: Settings of the calling thread that a backward pass has on another thread, too.
carried_settings: list[threading.local] = [_anomaly_settings]


def _run_on_a_thread(walk: Walk) -> None:
    """Run a backward pass on a new thread, which has the settings of this one, and wait for it."""
    settings = [(state, dict(vars(state))) for state in carried_settings]
    errors: list[BaseException] = []

    def work() -> None:
        for state, values in settings:
            vars(state).update(values)
        try:
            walk.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="candelabra-reentrant-backward", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def current_walk() -> Walk | None:
    """Return the backward pass that is running on this thread, or None."""
    return _current.walk


def accumulates_everywhere() -> bool:
    """Return whether no backward pass for some inputs only is running on this thread."""
    return _current.walk is None or _current.walk.captures is None


def queue_callback(callback: Callable[[], object]) -> None:
    """Call a function at the end of the backward pass that is running on this thread, after all
    gradients are accumulated.

    Raises
    ------
    RuntimeError
        No backward pass is running: this is for hooks.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd.engine import queue_callback
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: queue_callback(lambda: print(x.grad)))
    >>> x.sum().backward()
    tensor([1., 1.])
    """
    if _current.walk is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _current.walk.callbacks.append(callback)


def _node_of(edge: Edge) -> Any:
    if edge is None or isinstance(edge, Tensor):
        return None
    return edge[0] if edge.__class__ is tuple else edge


def walk_back(
    roots: Sequence[tuple[Edge, Tensor]],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
    accumulate: Callable[[list[Tensor | None]], None] | None = None,
) -> list[Tensor | None] | None:
    """Run a backward pass from `roots`, pairs of an edge and its incoming gradient.

    With `inputs`, `accumulate` is called with their gradients while the pass still runs, so that
    hooks can queue callbacks.

    Returns
    -------
    list of Tensor, or None
        The gradients of `inputs` (tensors or gradient edges). None without `inputs`, in which
        case gradients are accumulated into leaves.
    """
    walk = Walk(not retain_graph, create_graph)
    walk.accumulates = accumulate is not None
    if inputs is None:
        edge = grad = None  # no root, no loop
        for edge, grad in roots:
            walk.roots.append(edge)
            walk.add(edge, grad)
        del edge, grad, roots
        walk.run()
        return None
    keys = [_key_of(edge_of(one)) for one in inputs]
    captures = walk.captures = dict.fromkeys(keys)
    if accumulate is not None:
        walk.callbacks.append(lambda: accumulate([captures[key] for key in keys]))
    walk.find_needed([edge for edge, _ in roots], {key[0] for key in keys if isinstance(key, tuple)})
    for edge, grad in roots:
        walk.add(edge, grad)
    walk.run()
    return [captures[key] for key in keys]


def edge_of(place: Any) -> Edge:
    """Return the edge of a tensor or of a :class:`~.graph.GradientEdge`."""
    if isinstance(place, Tensor):
        return place._edge
    node, number = place
    if isinstance(node, AccumulateGrad):
        return node.variable
    return node if number == 0 else (node, number)


def _key_of(edge: Edge) -> Any:
    """Return the key in ``captures`` for a gradient that arrives at an edge."""
    if isinstance(edge, Tensor):
        return id(edge)
    return (edge[0]._sequence, edge[1]) if edge.__class__ is tuple else (edge._sequence, 0)


def _whole(grad: Any) -> Tensor:
    """Return the full gradient, finishing an assembly of parts."""
    return grad if isinstance(grad, Tensor) else grad.finish()
