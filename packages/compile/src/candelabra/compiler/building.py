"""Programs from recorded calls."""

from __future__ import annotations

from typing import Any, NamedTuple

from candelabra import _C, Tensor

from .recorded_call import RecordedCall
from .trees import UnsupportedError, same_form

#: How many calls are replayed between two that are recorded again and compared.
CALLS_BETWEEN_CHECKS = 1000
#: Modes, of which the first is none.
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Planning(NamedTuple):
    """How programs are made of recordings."""

    #: Whether memory is not shared, and poisoned after its last use.
    debug: bool = False
    #: Whether operators that the backend compiles give the bits of its kernels.
    is_exact: bool = True

    def program(self, recording: Any) -> Any:
        """Return the program of a recording, which has no arguments and results yet."""
        made = _C.Program(recording, self.debug)
        made.is_exact = self.is_exact
        return made


def planning_of(mode: str | None, debug: bool = False) -> Planning:
    """Return what a mode means. Raises ValueError for unknown ones."""
    if mode not in _MODES:
        raise ValueError(f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}")
    return Planning(debug, not (mode or "").startswith("max-autotune"))


def build(before: RecordedCall, call: RecordedCall, planning: Planning) -> Any:
    """Return the program of two recorded calls of one signature.

    Raises
    ------
    UnsupportedError
        If the calls differ, or something that the program needs is not guarded.
    """
    compare(before, call)
    program = planning.program(call.recording)
    _take_arguments(program, call)
    _check_memory(call, _owned(call) | _take_gradients(program, call), call.living)
    spent = SpentGraphs(call)
    for tensor in call.outputs:
        node = spent.node_of(tensor) if tensor.requires_grad and not _is_known(call, tensor) else None
        _give(program, call, tensor, node)
    _give_gradients(program, call)
    program.set_trees(call.positional, call.keywords, call.form)
    _guard(program, call, True)
    return program


def build_forward(
    before: RecordedCall, call: RecordedCall, output: Tensor, saved: list[Tensor], owner: Any, planning: Planning
) -> Any:
    """Return the program of a call whose result `output` has a graph.

    Its result is a tuple: `owner`, the result of the call, `output`, and the memory that the graph
    keeps.

    Raises
    ------
    UnsupportedError
        As for `build`.
    """
    compare(before, call)
    program = planning.program(call.recording)
    _take_arguments(program, call)
    environment = call.environment
    assert environment is not None
    if any(tensor._grad is not call.gradients[id(tensor)] for tensor in environment.tensors):
        raise UnsupportedError("the call changes gradients, and its result has a graph")
    kept = {call.recording.find(tensor) for tensor in saved}
    _check_memory(call, _owned(call), call.living - kept)
    for tensor in call.outputs:
        if tensor is not output and tensor.requires_grad and not _is_known(call, tensor):
            raise UnsupportedError("several results require grad")
        _give(program, call, tensor, None)
    for tensor in saved:
        program.add_result("memory", tensor, -1, None, None)
    number = next(number for number, tensor in enumerate(call.outputs) if tensor is output)
    count = len(call.outputs)
    memory = tuple(("tensor", count + k) for k in range(len(saved)))
    form = ("tuple", tuple, (("value", owner), call.form, ("tensor", number), ("tuple", tuple, memory)))
    program.set_trees(call.positional, call.keywords, form)
    _guard(program, call, False)
    return program


def _owned(call: RecordedCall) -> set[int]:
    """Return the memory from before the call that the program may use."""
    environment = call.environment
    assert environment is not None
    return {call.recording.find(tensor) for tensor in (*environment.tensors, *call.inputs)}


def _take_arguments(program: Any, call: RecordedCall) -> None:
    if call.changes_arguments():
        raise UnsupportedError("the call changes the containers of its arguments, or the form of a tensor among them")
    environment = call.environment
    assert environment is not None
    reached = {call.recording.find(tensor) for tensor in environment.tensors}
    for tensor in call.inputs:
        if tensor._grad is not call.gradients.get(id(tensor)):
            raise UnsupportedError("the gradient of an argument changes")
        program.add_input(tensor, call.recording.find(tensor) in reached, None, True)


def _guard(program: Any, call: RecordedCall, guards_gradients: bool) -> None:
    """Give the program its guards, and plan its memory."""
    environment = call.environment
    assert environment is not None
    for guard in environment.guards:
        program.add_guard(guard)
    changed = program.failed_guard()
    if changed is not None:
        raise UnsupportedError(f"the call changes {changed}")
    if environment.unguarded is not None:
        raise UnsupportedError(
            f"the code reads an object of type {environment.unguarded}, whose changes would not be noticed; keep its "
            "values in attributes, lists or tensors"
        )
    if environment.has_drawn():
        raise UnsupportedError("the call draws random numbers of NumPy, which a replay would not repeat")
    option = environment.changed_option()
    if option is not None:
        raise UnsupportedError(f"the call changes '{option}' of a parameter group; step schedules outside")
    try:
        for tensor in environment.tensors:
            may_have = 2 if not (guards_gradients and tensor.requires_grad) else int(call.gradients[id(tensor)] is None)
            program.add_guard(_C.Guard(("tensor", tensor, may_have)))
        program.finish()
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
    program.calls_left = CALLS_BETWEEN_CHECKS


def compare(before: RecordedCall, call: RecordedCall) -> None:
    """Raise UnsupportedError if two calls of one signature computed different things."""
    inputs = list(zip(call.buffers, before.offsets, call.offsets, strict=True))
    gradients = [(call.recording.find(grad), 0, 0) for grad in call.gradients.values() if grad is not None]
    difference = before.recording.difference(call.recording, inputs + gradients)
    if difference:
        raise UnsupportedError(f"{difference}; make it an argument of the function, or keep it in a tensor")
    if not same_form(before.form, call.form):
        raise UnsupportedError("the result has another form or other values in the next call")


def _check_memory(call: RecordedCall, owned: set[int], living: set[int]) -> None:
    recording = call.recording
    for buffer in recording.existing:
        if buffer not in owned:
            raise UnsupportedError(
                f"{recording.first_use(buffer)} uses a tensor that is neither an argument nor reached through names of "
                "the function, its closure, modules or optimizers"
            )
    if living:
        place = recording.first_use(min(living)) or "a function that makes tensors"
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
            program.add_input(grad, False, tensor, False)
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


def open_results(call: RecordedCall) -> list[Tensor]:
    """Return the results with a graph that a backward pass after the call would use."""
    spent = SpentGraphs(call)
    return [
        tensor
        for tensor in call.outputs
        if tensor.requires_grad and tensor.grad_fn is not None and not _is_known(call, tensor)
        and spent.node_of(tensor) is None
    ]  # fmt: skip


def _is_known(call: RecordedCall, tensor: Tensor) -> bool:
    """Return whether a result is a tensor from before the call."""
    return id(tensor) in call.gradients or any(tensor is given for given in call.inputs)


def _give(program: Any, call: RecordedCall, tensor: Tensor, node: Any) -> None:
    """Tell the program where a tensor of the result comes from."""
    for number, given in enumerate(call.inputs):
        if given is tensor:
            program.add_result("input", tensor, number, None, None)
            return
    if _is_known(call, tensor):
        program.add_result("object", tensor, -1, None, None)
        return
    if type(tensor) is not Tensor or tensor._hooks is not None or tensor._grad is not None:
        raise UnsupportedError("a result is a Parameter, of a subclass of Tensor, or has hooks or a gradient")
    buffer = call.recording.find(tensor)
    if buffer < 0:
        raise UnsupportedError("a result is a tensor that the call did not compute")
    if not call.recording.is_existing(buffer):
        program.add_result("memory", tensor, -1, node, None)
        return
    for number, given in enumerate(call.inputs):
        if call.recording.find(given) == buffer and given.dtype == tensor.dtype and not tensor.requires_grad:
            program.add_result("view", tensor, number, None, None)
            return
    raise UnsupportedError("a result is a view of a tensor that is no argument")


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
