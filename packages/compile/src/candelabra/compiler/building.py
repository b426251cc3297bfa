"""Programs from recorded calls."""

from __future__ import annotations

from typing import Any

from candelabra import _C, Tensor

from .recorded_call import RecordedCall
from .trees import UnsupportedError, same_form

#: How many calls are replayed between two that are recorded again and compared.
CALLS_BETWEEN_CHECKS = 1000


def build(before: RecordedCall, call: RecordedCall, debug: bool) -> Any:
    """Return the program of two recorded calls of one signature.

    Raises
    ------
    UnsupportedError
        If the calls differ, or something that the program needs is not guarded.
    """
    compare(before, call)
    program = _C.Program(call.recording, debug)
    environment = call.environment
    assert environment is not None
    by_id = {id(tensor): tensor for tensor in environment.tensors}
    reached = {call.recording.find(tensor) for tensor in environment.tensors}
    for tensor in call.inputs:
        if tensor._grad is not call.gradients.get(id(tensor)):
            raise UnsupportedError("the gradient of an argument changes")
        program.add_input(tensor, call.recording.find(tensor) in reached, None)
    owned = reached | {call.recording.find(tensor) for tensor in call.inputs}
    owned |= _take_gradients(program, call)
    _check_memory(call, owned)
    spent = SpentGraphs(call)
    numbers = {id(tensor): number for number, tensor in reversed(list(enumerate(call.inputs)))}
    for tensor in call.outputs:
        _give(program, call, tensor, numbers, by_id, spent)
    _give_gradients(program, call)
    program.set_trees(call.positional, call.keywords, call.form)
    for guard in environment.guards:
        program.add_guard(guard)
    changed = program.failed_guard()
    if changed is not None:
        raise UnsupportedError(f"the call changes {changed}")
    option = environment.changed_option()
    if option is not None:
        raise UnsupportedError(f"the call changes '{option}' of a parameter group; step schedules outside")
    for tensor in environment.tensors:
        try:
            program.add_guard(
                ("tensor", tensor, int(call.gradients[id(tensor)] is None) if tensor.requires_grad else 2)
            )
        except ValueError as error:
            raise UnsupportedError(str(error)) from None
    try:
        program.finish()
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
    program.calls_left = CALLS_BETWEEN_CHECKS
    return program


def compare(before: RecordedCall, call: RecordedCall) -> None:
    """Raise UnsupportedError if two calls of one signature computed different things."""
    inputs = list(zip(call.buffers, before.offsets, call.offsets, strict=True))
    gradients = [(call.recording.find(grad), 0, 0) for grad in call.gradients.values() if grad is not None]
    difference = before.recording.difference(call.recording, inputs + gradients)
    if difference:
        raise UnsupportedError(f"{difference}; make it an argument of the function, or keep it in a tensor")
    if not same_form(before.form, call.form):
        raise UnsupportedError("the result has another form or other values in the next call")


def _check_memory(call: RecordedCall, owned: set[int]) -> None:
    recording = call.recording
    for buffer in recording.existing:
        if buffer not in owned:
            raise UnsupportedError(
                f"{recording.first_use(buffer)} uses a tensor that is neither an argument nor reached through names of "
                "the function, its closure, modules or optimizers"
            )
    if call.living:
        place = recording.first_use(min(call.living)) or "a function that makes tensors"
        raise UnsupportedError(f"a tensor of {place} is kept elsewhere than in the result")


def _take_gradients(program: Any, call: RecordedCall) -> set[int]:
    """Make the gradients that the call reads inputs of the program. Returns their memory."""
    environment = call.environment
    assert environment is not None
    taken = set()
    for tensor in environment.tensors:
        grad = call.gradients[id(tensor)]
        if grad is None:
            continue
        buffer = call.recording.find(grad)
        used = buffer >= 0 and call.recording.is_used(buffer)
        if used:
            program.add_input(grad, False, tensor)
            taken.add(buffer)
        if tensor._grad is not grad:
            program.clear_gradient(tensor, used)
    return taken


def _give_gradients(program: Any, call: RecordedCall) -> None:
    environment = call.environment
    assert environment is not None
    for tensor in environment.tensors:
        grad = tensor._grad
        if grad is None or grad is call.gradients[id(tensor)]:
            continue
        buffer = call.recording.find(grad)
        if buffer < 0 or call.recording.is_existing(buffer) or grad.requires_grad or type(grad) is not Tensor:
            raise UnsupportedError("a gradient is set to a tensor that the call did not compute")
        program.add_result("memory", grad, -1, None, tensor)


def _give(
    program: Any,
    call: RecordedCall,
    tensor: Tensor,
    numbers: dict[int, int],
    reached: dict[int, Tensor],
    spent: SpentGraphs,
) -> None:
    """Tell the program where a tensor of the result comes from."""
    if id(tensor) in numbers:
        program.add_result("input", tensor, numbers[id(tensor)], None, None)
        return
    if id(tensor) in reached:
        program.add_result("object", tensor, -1, None, None)
        return
    if type(tensor) is not Tensor or tensor._hooks is not None or tensor._grad is not None:
        raise UnsupportedError("a result is a Parameter, of a subclass of Tensor, or has hooks or a gradient")
    node = None
    if tensor.requires_grad:
        node = spent.node_of(tensor)
        if node is None:
            raise NeedsGraphError("a result requires grad, and no backward pass in the function has used it up")
    buffer = call.recording.find(tensor)
    if buffer < 0:
        raise UnsupportedError("a result is a tensor that the call did not compute")
    if not call.recording.is_existing(buffer):
        program.add_result("memory", tensor, -1, node, None)
        return
    for number, given in enumerate(call.inputs):
        if call.recording.find(given) == buffer and given.dtype == tensor.dtype and node is None:
            program.add_result("view", tensor, number, None, None)
            return
    raise UnsupportedError("a result is a view of a tensor that is no argument")


class NeedsGraphError(UnsupportedError):
    """A result has a graph that a backward pass after the call would use."""


class SpentGraphs:
    """The graphs that backward passes in a recorded call have freed."""

    def __init__(self, call: RecordedCall) -> None:
        self._freed: set[int] = set()
        waiting = [_node_of(edge) for edge in call.recording.freed_edges]
        while waiting:
            node = waiting.pop()
            if node is None or node._sequence in self._freed:
                continue
            self._freed.add(node._sequence)
            waiting.extend(_node_of(edge) for edge in node.all_edges())
        call.recording.forget_edges()

    def node_of(self, tensor: Tensor) -> Any:
        """Return the node that stands for a freed graph; None if the tensor's is not freed."""
        node: Any = tensor.grad_fn
        if node is None or node._sequence not in self._freed:
            return None
        # Only with candelabra.autograd are there nodes.
        from .spent import node_like

        return node_like(node)


def _node_of(edge: Any) -> Any:
    if edge is None or isinstance(edge, Tensor):
        return None
    return edge[0] if isinstance(edge, tuple) else edge
