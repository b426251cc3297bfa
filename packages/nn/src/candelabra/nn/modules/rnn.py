"""Provide recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
from typing import Any

import candelabra
from candelabra import _C, Tensor

from .. import init
from ..functional import recurrent as R
from ..parameter import Parameter
from ..utils.rnn import PackedSequence, permute_states
from .module import Module

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = {"RNN_TANH": R.rnn_tanh, "RNN_RELU": R.rnn_relu, "GRU": R.gru, "LSTM": R.lstm}


class RNNBase(Module):
    """Share parameters, checks and the handling of padded and packed sequences.

    The parameters are ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, and with
    `proj_size` also ``weight_hr_l0``. Those of the reverse direction follow with the suffix
    ``_reverse``, then those of the next layer. All are initialized uniformly in ``+-1 /
    sqrt(hidden_size)``.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(dropout, bool) or not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1:  # type: ignore[operator]
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            _C.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but "
                f"got dropout={dropout} and num_layers={num_layers}",
            )
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        rows, state = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * (1 + bidirectional)
            for suffix in ("", "_reverse")[: 1 + bidirectional]:
                shapes: list[tuple[str, tuple[int, ...]]] = [("weight_ih", (rows, width)), ("weight_hh", (rows, state))]
                if bias:
                    shapes += [("bias_ih", (rows,)), ("bias_hh", (rows,))]
                if proj_size:
                    shapes.append(("weight_hr", (proj_size, hidden_size)))
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name, _ in shapes])
                for name, shape in shapes:
                    setattr(
                        self, f"{name}_l{layer}{suffix}", Parameter(candelabra.empty(shape, device=device, dtype=dtype))
                    )
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    @property
    def _flat_weights(self) -> list[Any]:
        """Return the current parameters in the order in which the functions take them."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """Return the parameters, in one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing.

        PyTorch programs call this method, but no backend needs contiguous weights.
        """

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    # ---- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise if dtype, dimensions or width of the input are invalid."""
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: input.to({weight.dtype}), or "
                f"convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.ndim != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.ndim}")
        if batch_sizes is None and input.shape[1 if self.batch_first else 0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _state_shape(self, input: Tensor, batch_sizes: Tensor | None, width: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.shape[0 if self.batch_first else 1]
        return self.num_layers * (1 + self.bidirectional), batch, width

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the required shape of the hidden state for this input."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise if the state does not have the expected shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if the input or the states are invalid."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Permute the batch dimension of the states. None leaves them unchanged."""
        return hx if permutation is None else permute_states(hx, permutation)

    # ---- the states: one tensor, or a pair for LSTM

    def _zero_states(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _with_batch(self, hx: Any, batched: bool) -> Any:
        """Return the states with a batch dimension, after checking that it matches the input."""
        if hx.ndim != (3 if batched else 2):
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx should also be {3 if batched else 2}-D but got {hx.ndim}-D tensor"
            )
        return hx if batched else hx.unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _hidden_of(self, states: tuple[Tensor, ...]) -> Any:
        return states[0]

    def forward(self, input: Any, hx: Any = None) -> Any:
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        function = _FUNCTIONS[self.mode]
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            hx = self._zero_states(data, batch_sizes) if hx is None else self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, hx, batch_sizes)
            output, *states = function(data, batch_sizes, hx, self._flat_weights, *options)
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(self._hidden_of(tuple(states)), unsorted_indices)
        if input.ndim not in (2, 3):
            end = " tensor instead" if self.mode.startswith("RNN") else " instead"
            raise ValueError(f"{self.mode.split('_')[0]}: Expected input to be 2D or 3D, got {input.ndim}D{end}")
        batched = input.ndim == 3
        place = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(place)
        hx = self._zero_states(input, None) if hx is None else self._with_batch(hx, batched)
        self.check_forward_args(input, hx, None)
        output, *states = function(input, hx, self._flat_weights, *options, self.batch_first)
        hidden = self._hidden_of(tuple(states))
        return (output, hidden) if batched else (output.squeeze(place), self._without_batch(hidden))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        for name, usual in (("bias", True), ("batch_first", False), ("dropout", 0), ("bidirectional", False)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """Run an Elman network: ``h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)``.

    Parameters
    ----------
    input_size, hidden_size
        Sizes of the input and of the state at one time step.
    num_layers
        Number of stacked layers.
    nonlinearity
        ``"tanh"`` or ``"relu"``.
    bias
        Whether the layers have biases.
    batch_first
        Whether input and output are (N, T, ...) rather than (T, N, ...). This does not apply to the
        states.
    dropout
        Dropout probability of the inputs of all layers but the first; used in training only.
    bidirectional
        Whether to add a second network that runs backward in time. The output concatenates both.

    Notes
    -----
    Shapes: input (T, N, input_size), (T, input_size) or a `PackedSequence`; hx (layers *
    directions, N, hidden_size), by default zeros. The results are the output (T, N, directions *
    hidden_size) and the final states. Source: Elman, 1990.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> output, h_n = nn.RNN(10, 20, 2)(candelabra.randn(5, 3, 10))
    >>> output.shape, h_n.shape
    (candelabra.Size([5, 3, 20]), candelabra.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Run layers of gated recurrent units.

    With reset gate r, update gate z and new gate n: ``r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)``,
    z likewise with its own weights, ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))``, and ``h' =
    (1 - z) * n + z * h``. The weights stack r, z and n. Parameters and shapes are those of `RNN`
    without `nonlinearity`. Source: Cho et al., 2014.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> output, h_n = nn.GRU(10, 20, batch_first=True, bidirectional=True)(candelabra.randn(3, 5, 10))
    >>> output.shape, h_n.shape
    (candelabra.Size([3, 5, 40]), candelabra.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Run layers of long short-term memories.

    The input gate i, forget gate f and output gate o are sigmoids of ``W x + b + W h + b``. The
    cell gate g is a tanh of it. Then ``c' = f * c + i * g`` and ``h' = o * tanh(c')``. The weights
    stack i, f, g and o.

    Parameters and shapes are those of `RNN` without `nonlinearity`. A positive `proj_size` is the
    size to which h is projected (by the parameter ``weight_hr_l0``). The states, both as argument
    and as result, are a pair (h, c). Sources: Hochreiter and Schmidhuber, 1997; Sak et al., 2014.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> output, (h_n, c_n) = nn.LSTM(10, 20, 2, proj_size=5)(candelabra.randn(5, 3, 10))
    >>> output.shape, h_n.shape, c_n.shape
    (candelabra.Size([5, 3, 5]), candelabra.Size([2, 3, 5]), candelabra.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the required shape of the cell state for this input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if the input or the states are invalid."""
        self.check_input(input, batch_sizes)
        shapes = (self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes))
        for number, shape in enumerate(shapes):
            self.check_hidden_size(hidden[number], shape, f"Expected hidden[{number}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Permute the batch dimension of the states. None leaves them unchanged."""
        return hx if permutation is None else tuple(permute_states(state, permutation) for state in hx)

    def _zero_states(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return (
            input.new_zeros(self.get_expected_hidden_size(input, batch_sizes)),
            input.new_zeros(self.get_expected_cell_size(input, batch_sizes)),
        )

    def _with_batch(self, hx: Any, batched: bool) -> Any:
        dims = 3 if batched else 2
        if hx[0].ndim != dims or hx[1].ndim != dims:
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx and cx should also be {dims}-D but got ({hx[0].ndim}-D, "
                f"{hx[1].ndim}-D) tensors"
            )
        return hx if batched else tuple(state.unsqueeze(1) for state in hx)

    def _without_batch(self, hx: Any) -> Any:
        return tuple(state.squeeze(1) for state in hx)

    def _hidden_of(self, states: tuple[Tensor, ...]) -> Any:
        return states


# ---- cells


class RNNCellBase(Module):
    """Share the parameters and checks of the cells.

    The parameters ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh`` hold `num_chunks`
    gates.
    """

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(candelabra.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(candelabra.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, Parameter(candelabra.empty(rows, device=device, dtype=dtype)) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _check(self, input: Tensor, hx: Any) -> None:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        states = () if hx is None else (hx,) if isinstance(hx, Tensor) else tuple(hx)
        for number, state in enumerate(states):
            if state.ndim not in (1, 2):
                what = "hidden" if isinstance(hx, Tensor) else f"hx[{number}]"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}")
        for number, state in enumerate(states):
            if input.ndim == 2 and state.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {state.shape[0]}"
                )
            if state.shape[-1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {state.shape[-1]}, expected {self.hidden_size}"
                )

    def _step(self, function: Any, input: Tensor, hx: Any) -> Any:
        """Compute one step of a cell with one state."""
        self._check(input, hx)
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = input.new_zeros((input.shape[0], self.hidden_size))
        elif not batched:
            hx = hx.unsqueeze(0)
        result = function(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """Compute one step of an Elman network; see `RNN`.

    Shapes: input (N, input_size) or (input_size), hx and result (N, hidden_size).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.RNNCell(10, 20)(candelabra.randn(3, 10)).shape
    candelabra.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(R.rnn_tanh_cell if self.nonlinearity == "tanh" else R.rnn_relu_cell, input, hx)


class LSTMCell(RNNCellBase):
    """Compute one step of a long short-term memory; see `LSTM`.

    The states, both as argument and as result, are a pair (h, c).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> h, c = nn.LSTMCell(10, 20)(candelabra.randn(3, 10))
    >>> h.shape, c.shape
    (candelabra.Size([3, 20]), candelabra.Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, hx)
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = input.new_zeros((input.shape[0], self.hidden_size))
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = R.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """Compute one step of a gated recurrent unit; see `GRU`.

    Shapes: input (N, input_size) or (input_size), hx and result (N, hidden_size).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.GRUCell(10, 20)(candelabra.randn(10), candelabra.zeros(20)).shape
    candelabra.Size([20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(R.gru_cell, input, hx)


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]
