"""Implement recurrent layers and cells as functions, for padded and packed sequences.

One matrix product per layer computes the input gates of all time steps. Only the recurrent part
runs step by step. The weights hold the gates in PyTorch's order: input, forget, cell, output
(LSTM); reset, update, new (GRU).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import candelabra
from candelabra import Tensor, ops
from candelabra.amp import get_autocast_dtype, is_autocast_enabled
from candelabra.composite.nn.recurrent import last_states

from .dropout import dropout as _dropout

_linear = ops.linear
_has_stacks = ops.recurrent_stack.has_kernel

#: A time step maps the input part of the gates, the previous states and the recurrent weights to
#: the new states. The first state is the output.
State = tuple[Tensor, ...]
Step = Callable[[Tensor, State, "_Weights"], State]


class _Weights:
    """Hold the parameters of one direction of one layer."""

    __slots__ = ("b_hh", "b_ih", "w_hh", "w_hr", "w_ih")

    def __init__(self, params: Sequence[Tensor], has_biases: bool, projected: bool) -> None:
        self.w_ih, self.w_hh = params[:2]
        self.b_ih: Tensor | None = params[2] if has_biases else None
        self.b_hh: Tensor | None = params[3] if has_biases else None
        self.w_hr: Tensor | None = params[-1] if projected else None

    def input_bias(self, name: str) -> Tensor | None:
        """Return the bias of the input part of the gates.

        The recurrent bias is added to it where both apply to the same sums. In a GRU the new gate
        scales the recurrent bias, so the two stay separate.
        """
        if name != "gru" and self.b_ih is not None and self.b_hh is not None:
            self.b_ih, self.b_hh = self.b_ih + self.b_hh, None
        return self.b_ih


def _plain_step(activation: Callable[[Tensor], Tensor]) -> Step:
    def step(gates: Tensor, states: State, weights: _Weights) -> State:
        return (activation(gates + _linear(states[0], weights.w_hh, weights.b_hh)),)

    return step


def _lstm_step(gates: Tensor, states: State, weights: _Weights) -> State:
    h, c = states
    width = c.shape[-1]
    i, f, g, o = (gates + _linear(h, weights.w_hh, weights.b_hh)).split(width, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if weights.w_hr is None else _linear(h, weights.w_hr, None)), c


def _gru_step(gates: Tensor, states: State, weights: _Weights) -> State:
    (h,) = states
    width = h.shape[-1]
    from_input = gates.split(width, -1)
    from_state = _linear(h, weights.w_hh, weights.b_hh).split(width, -1)
    r = (from_input[0] + from_state[0]).sigmoid()
    z = (from_input[1] + from_state[1]).sigmoid()
    n = (from_input[2] + r * from_state[2]).tanh()
    return (n + z * (h - n),)


#: For each kind of network: the step function, and the number of gates in the weights.
_KINDS: dict[str, tuple[Step, int]] = {
    "rnn_tanh": (_plain_step(lambda x: x.tanh()), 1),
    "rnn_relu": (_plain_step(lambda x: x.relu()), 1),
    "lstm": (_lstm_step, 4),
    "gru": (_gru_step, 3),
}


# ---- cells


def _cell(
    name: str, input: Tensor, states: State, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> State:
    step, gates = _KINDS[name]
    hidden = states[0].shape[-1]
    if input.ndim not in (1, 2) or any(state.ndim != input.ndim for state in states):
        raise RuntimeError(
            f"{name}_cell: expected input and states of one or two dimensions, but got {list(input.shape)} and "
            f"{[list(state.shape) for state in states]}"
        )
    if w_ih.ndim != 2 or w_ih.shape[1] != input.shape[-1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[-1]}")
    if input.ndim == 2 and input.shape[0] != states[0].shape[0]:
        raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden0 batch size {states[0].shape[0]}")
    if tuple(w_hh.shape) != (gates * hidden, hidden):
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {hidden}, expected {w_hh.shape[-1]}")
    weights = _Weights((w_ih, w_hh, b_ih, b_hh), True, False)  # type: ignore[arg-type]
    return step(_linear(input, w_ih, b_ih), states, weights)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Compute one step of an Elman network: ``tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh)``.

    Shapes: input (N, I), hx (N, H), w_ih (H, I), w_hh (H, H), biases (H), result (N, H).

    Examples
    --------
    >>> import candelabra
    >>> one = candelabra.ones(1, 1)
    >>> candelabra.rnn_tanh_cell(one, one * 0, one, one)
    tensor([[0.7616]])
    """
    return _cell("rnn_tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Compute one step of an Elman network with ReLU; see :func:`candelabra.rnn_tanh_cell`.

    Examples
    --------
    >>> import candelabra
    >>> one = candelabra.ones(1, 1)
    >>> candelabra.rnn_relu_cell(one, one, one, one)
    tensor([[2.]])
    """
    return _cell("rnn_relu", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Compute one step of a gated recurrent unit (Cho et al. 2014).

    Shapes: input (N, I), hx (N, H), w_ih (3H, I), w_hh (3H, H), biases (3H), result (N, H).

    Examples
    --------
    >>> import candelabra
    >>> candelabra.gru_cell(candelabra.zeros(1, 1), candelabra.ones(1, 1), candelabra.zeros(3, 1), candelabra.zeros(3, 1))
    tensor([[0.5000]])
    """
    return _cell("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute one step of a long short-term memory.

    Sources: Hochreiter and Schmidhuber 1997; Gers et al. 2000 for the forget gate.

    Shapes: input (N, I), hx a pair of (N, H), w_ih (4H, I), w_hh (4H, H), biases (4H), results two
    of (N, H).

    Examples
    --------
    >>> import candelabra
    >>> zero, one = candelabra.zeros(1, 1), candelabra.ones(1, 1)
    >>> candelabra.lstm_cell(zero, (zero, one), candelabra.zeros(4, 1), candelabra.zeros(4, 1))[1]
    tensor([[0.5000]])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = _cell("lstm", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    return h, c


# ---- layers


def _run_fused(
    name: str, input: Tensor, states: State, weights: _Weights, backwards: bool, batch_sizes: list[int]
) -> tuple[Tensor, State]:
    """Run one direction in one operator call.

    The input is (T, N, I), or (sum of batch sizes, I).
    """
    w_hh, bias_ih = weights.w_hh, weights.input_bias(name)
    h0, c0 = states[0], states[1] if name == "lstm" else None
    rest = batch_sizes, backwards, name
    if not is_autocast_enabled(input.device.type):
        output, cell_state = ops.recurrent_layer_states(input, weights.w_ih, bias_ih, h0, c0, w_hh, weights.b_hh, *rest)
    else:
        gates = _linear(input, weights.w_ih, bias_ih)
        if gates.dtype != h0.dtype:
            # Matrix products use the autocast dtype. The new GRU state is an average with the old
            # one, so a GRU uses the dtype of the state.
            if name == "gru":
                gates = gates.to(h0.dtype)
            else:
                h0, w_hh = h0.to(gates.dtype), w_hh.to(gates.dtype)
                c0 = None if c0 is None else c0.to(gates.dtype)
        output, cell_state = ops.recurrent_states(gates, h0, c0, w_hh, weights.b_hh, *rest)
    last = last_states(output, h0, batch_sizes, backwards)
    return output, (last,) if c0 is None else (last, cell_state)


def _run_whole(
    name: str,
    input: Tensor,
    states: State,
    params: Sequence[Tensor],
    has_biases: bool,
    bidirectional: bool,
    batch_sizes: list[int],
) -> tuple[Tensor, State]:
    """Run all layers that the states and parameters describe in one operator call."""
    each, count = 4 if has_biases else 2, states[0].shape[0]
    weights = candelabra.cat([
        param.flatten() for first in range(0, each, 2) for at in range(count) for param in params[at * each + first : at * each + first + 2]
    ])  # fmt: skip
    if is_autocast_enabled(input.device.type) and input.dtype is not candelabra.float64:
        dtype = get_autocast_dtype(input.device.type)
        input, weights, states = input.to(dtype), weights.to(dtype), tuple(state.to(dtype) for state in states)
    h0, c0 = states[0], states[1] if name == "lstm" else None
    layers = count // (2 if bidirectional else 1)
    output, h, c = ops.recurrent_stack(input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, name)
    return output, (h,) if c0 is None else (h, c)


def _check_sizes(name: str, w_ih: Tensor, w_hh: Tensor, width: int, states: State, gate_count: int) -> None:
    """Check the weights of one direction of a layer against the input width and the states."""
    if w_ih.shape[1] != width:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {w_ih.shape[1]}, got {width}")
    hidden = w_hh.shape[0] // gate_count
    if states[-1].shape[-1] != hidden or states[0].shape[-1] != w_hh.shape[1]:
        raise RuntimeError(f"{name}: expected hidden states of size {hidden}, but got {list(states[-1].shape)}")


def _run_padded(gates: Tensor, states: State, weights: _Weights, step: Step, backwards: bool) -> tuple[Tensor, State]:
    """Run one direction over gates (T, N, G), step by step."""
    times = gates.unbind(0)
    outputs = []
    for at in reversed(times) if backwards else times:
        states = step(at, states, weights)
        outputs.append(states[0])
    if not outputs:
        return gates.new_empty((0, *states[0].shape)), states
    return candelabra.stack(outputs[::-1] if backwards else outputs), states


def _run_packed(
    gates: Tensor, states: State, weights: _Weights, step: Step, backwards: bool, batch_sizes: list[int]
) -> tuple[Tensor, State]:
    """Run one direction over packed gates (sum of batch sizes, G), step by step.

    The longest sequences come first, so the sequences that end are the last rows of a batch.
    """
    times = gates.split(batch_sizes, 0)
    if backwards:
        first, outputs = states, []
        states = tuple(state[: batch_sizes[-1]] for state in first)
        for at, batch in zip(reversed(times), reversed(batch_sizes), strict=True):
            have = states[0].shape[0]
            if batch > have:
                states = tuple(
                    candelabra.cat([state, start[have:batch]]) for state, start in zip(states, first, strict=True)
                )
            states = step(at, states, weights)
            outputs.append(states[0])
        return candelabra.cat(outputs[::-1]), states
    outputs, ended = [], []
    for at, batch in zip(times, batch_sizes, strict=True):
        if batch < states[0].shape[0]:
            ended.append(tuple(state[batch:] for state in states))
            states = tuple(state[:batch] for state in states)
        states = step(at, states, weights)
        outputs.append(states[0])
    final = (
        tuple(candelabra.cat(parts) for parts in zip(states, *((*e,) for e in reversed(ended)), strict=True))
        if ended
        else states
    )
    return candelabra.cat(outputs), final


def _layers(
    name: str,
    input: Tensor,
    initial: State,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_sizes: list[int] | None,
) -> tuple[Tensor, State]:
    """Run all layers. `initial` and the final states are (layers * directions, N, H)."""
    step, gate_count = _KINDS[name]
    directions = 2 if bidirectional else 1
    projected = name == "lstm" and initial[0].shape[2] != initial[1].shape[2]
    each = 2 + 2 * has_biases + projected
    if len(params) != each * directions * num_layers:
        raise RuntimeError(f"{name}: expected {each * directions * num_layers} parameters, but got {len(params)}")
    for state in initial:
        if state.shape[0] != directions * num_layers:
            raise RuntimeError(
                f"{name}: expected hidden states of {directions * num_layers} layers and directions, but got {list(state.shape)}"
            )
        if state.dtype != input.dtype:
            raise RuntimeError(
                f"{name}: input and hidden states must have the same dtype, but got {input.dtype} and {state.dtype}"
            )
    batch = batch_sizes[0] if batch_sizes is not None else input.shape[1]
    if initial[0].shape[1] != batch:
        raise RuntimeError(f"{name}: expected hidden states of a batch of {batch}, but got {list(initial[0].shape)}")
    if not projected and _has_stacks(input.device):
        return _stacks(
            name,
            input,
            initial,
            params,
            has_biases,
            num_layers,
            dropout if train else 0.0,
            bidirectional,
            batch_sizes or [],
        )
    finals: list[State] = []
    for layer in range(num_layers):
        if layer and dropout:
            input = _dropout(input, dropout, train)
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            weights = _Weights(params[at * each : (at + 1) * each], has_biases, projected)
            _check_sizes(name, weights.w_ih, weights.w_hh, input.shape[-1], initial, gate_count)
            states = tuple(state[at] for state in initial)
            if not projected:
                output, final = _run_fused(name, input, states, weights, direction == 1, batch_sizes or [])
            else:
                gates = _linear(input, weights.w_ih, weights.input_bias(name))
                if batch_sizes is None:
                    output, final = _run_padded(gates, states, weights, step, direction == 1)
                else:
                    output, final = _run_packed(gates, states, weights, step, direction == 1, batch_sizes)
            outputs.append(output)
            finals.append(final)
        input = outputs[0] if directions == 1 else candelabra.cat(outputs, -1)
    return input, tuple(candelabra.stack(parts) for parts in zip(*finals, strict=True))


def _stacks(
    name: str,
    input: Tensor,
    initial: State,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_sizes: list[int],
) -> tuple[Tensor, State]:
    """Run all layers on a backend that takes several layers per call.

    Dropout between layers splits the stack into one call per layer.
    """
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    for at in range(num_layers * directions):
        w_ih, w_hh = params[at * each : at * each + 2]
        width = input.shape[-1] if at < directions else directions * initial[0].shape[2]
        _check_sizes(name, w_ih, w_hh, width, initial, _KINDS[name][1])
    if not dropout:
        return _run_whole(name, input, initial, params, has_biases, bidirectional, batch_sizes)
    finals: list[State] = []
    for layer in range(num_layers):
        if layer:
            input = _dropout(input, dropout, True)
        first = layer * directions
        states = tuple(state[first : first + directions] for state in initial)
        own = params[first * each : (first + directions) * each]
        input, final = _run_whole(name, input, states, own, has_biases, bidirectional, batch_sizes)
        finals.append(final)
    return input, tuple(candelabra.cat(parts) for parts in zip(*finals, strict=True))


_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _recurrent(name: str, arguments: tuple[Any, ...], names: dict[str, Any]) -> tuple[Tensor, State]:
    """Parse the arguments of the padded or the packed form and run the layers."""
    packed = "batch_sizes" in names or "data" in names
    if not packed and len(arguments) > 2:
        # The third argument is the hidden state in the packed form, and the list of parameters in
        # the padded form.
        packed = isinstance(arguments[1], Tensor) and (isinstance(arguments[2], Tensor) or name == "lstm")
    order = _PACKED if packed else _PADDED
    given = dict(zip(order, arguments, strict=False))
    if len(arguments) > len(order) or given.keys() & names.keys() or (given.keys() | names.keys()) != set(order):
        raise TypeError(f"{name}() takes the arguments ({', '.join(_PADDED)}) or ({', '.join(_PACKED)})")
    given.update(names)
    hx = given["hx"]
    if name == "lstm":
        if isinstance(hx, Tensor) or len(hx) != 2:
            raise RuntimeError("lstm expects two hidden states")
        initial: State = tuple(hx)
    else:
        initial = (hx,)
    for state in initial:
        if state.ndim != 3:
            raise RuntimeError(f"{name}: expected hidden states of three dimensions, but got {list(state.shape)}")
    rest = (
        given["params"],
        given["has_biases"],
        given["num_layers"],
        given["dropout"],
        given["train"],
        given["bidirectional"],
    )
    if packed:
        data = given["data"]
        sizes = [int(size) for size in given["batch_sizes"].tolist()]
        if (
            not sizes
            or sizes[-1] < 1
            or any(a < b for a, b in itertools.pairwise(sizes))
            or sum(sizes) != data.shape[0]
        ):
            raise RuntimeError(
                f"{name}: batch_sizes must be positive, must not grow, and must add up to the {data.shape[0]} rows of data, but got {sizes}"
            )
        return _layers(name, data, initial, *rest, sizes)
    input = given["input"]
    if input.ndim != 3:
        raise RuntimeError(f"{name}: expected an input of three dimensions, but got {list(input.shape)}")
    if given["batch_first"]:
        output, final = _layers(name, input.transpose(0, 1), initial, *rest, None)
        return output.transpose(0, 1), final
    return _layers(name, input, initial, *rest, None)


def rnn_tanh(*arguments: Any, **names: Any) -> tuple[Tensor, Tensor]:
    """Run the layers of an Elman network with tanh.

    Call it as ``rnn_tanh(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first)``, or for packed sequences as ``rnn_tanh(data, batch_sizes, hx, params, has_biases,
    num_layers, dropout, train, bidirectional)``.

    Parameters
    ----------
    input, data
        (T, N, I), or (N, T, I) with `batch_first`. Packed: the rows of all sequences, ordered by
        time step.
    batch_sizes
        Number of sequences at each time step.
    hx
        (layers * directions, N, H).
    params
        For each layer and direction ``w_ih, w_hh`` and, with `has_biases`, ``b_ih, b_hh``.
    dropout, train
        Dropout probability of the inputs of all layers but the first; used in training only.

    Returns
    -------
    output, h_n
        The outputs of the last layer for all time steps, and the final state of each layer and
        direction.

    Examples
    --------
    >>> import candelabra
    >>> one = candelabra.ones(1, 1)
    >>> x = candelabra.ones(2, 1, 1)
    >>> candelabra.rnn_tanh(x, x[:1] * 0, [one, one], False, 1, 0.0, False, False, False)[0].flatten()
    tensor([0.7616, 0.9427])
    """
    output, (h,) = _recurrent("rnn_tanh", arguments, names)
    return output, h


def rnn_relu(*arguments: Any, **names: Any) -> tuple[Tensor, Tensor]:
    """Run the layers of an Elman network with ReLU; called like :func:`candelabra.rnn_tanh`.

    Examples
    --------
    >>> import candelabra
    >>> one = candelabra.ones(1, 1)
    >>> x = candelabra.ones(2, 1, 1)
    >>> candelabra.rnn_relu(x, x[:1] * 0, [one, one], False, 1, 0.0, False, False, False)[0].flatten()
    tensor([1., 2.])
    """
    output, (h,) = _recurrent("rnn_relu", arguments, names)
    return output, h


def gru(*arguments: Any, **names: Any) -> tuple[Tensor, Tensor]:
    """Run layers of gated recurrent units (Cho et al. 2014).

    Called like :func:`candelabra.rnn_tanh`.

    Examples
    --------
    >>> import candelabra
    >>> params = [candelabra.zeros(3, 1), candelabra.zeros(3, 1)]
    >>> x = candelabra.ones(2, 1, 1)
    >>> candelabra.gru(x, x[:1], params, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([0.5000, 0.2500])
    """
    output, (h,) = _recurrent("gru", arguments, names)
    return output, h


def lstm(*arguments: Any, **names: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run layers of long short-term memories.

    Called like :func:`candelabra.rnn_tanh`, with a pair of states as `hx`.

    If the two states differ in size, `params` also contains a projection matrix after the
    parameters of each layer and direction (Sak et al. 2014).

    Returns
    -------
    output, h_n, c_n
        The outputs of the last layer for all time steps, and the final states.

    Examples
    --------
    >>> import candelabra
    >>> params = [candelabra.zeros(4, 1), candelabra.zeros(4, 1)]
    >>> x = candelabra.ones(2, 1, 1)
    >>> candelabra.lstm(x, (x[:1], x[:1]), params, False, 1, 0.0, False, False, False)[2].flatten()
    tensor([0.2500])
    """
    output, (h, c) = _recurrent("lstm", arguments, names)
    return output, h, c
