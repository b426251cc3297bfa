"""Test recurrent kernels against single steps in NumPy: batch blocks, layouts, invalid shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from values import FLOATS, assert_values, random_tensor, wide

import candelabra
from candelabra import ops
from candelabra.testing.reference import recurrent as reference
from candelabra.testing.reference.recurrent import backward, forward


def arguments(dtype: str, steps: int, batch: int, hidden: int, layout: str = "contiguous") -> list[Any]:
    shapes = ((steps, batch, 4 * hidden), (batch, hidden), (batch, hidden), (4 * hidden, hidden))
    return [random_tensor(shape, dtype, layout, seed) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("batch", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("reverse", [False, True])
def test_blocks_of_the_batch(dtype: str, batch: int, reverse: bool) -> None:
    tensors = arguments(dtype, 4, batch, 6)
    expected = forward(*map(wide, tensors), reverse)
    for got, wanted in zip(ops.lstm_sequence(*tensors, reverse), expected, strict=True):
        assert_values(got, wanted, scale=20)


@pytest.mark.parametrize(("steps", "batch", "hidden"), [(3, 16, 512), (2, 70, 544)])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_weight_that_threads_divide(steps: int, batch: int, hidden: int, reverse: bool) -> None:
    gates, h, c, weight = arguments("float32", steps, batch, hidden)
    weight = weight / hidden**0.5
    made = ops.lstm_sequence(gates, h, c, weight, reverse)
    for got, wanted in zip(made, forward(*map(wide, (gates, h, c, weight)), reverse), strict=True):
        assert_values(got, wanted, scale=50)
    grads = [random_tensor(tuple(one.shape), "float32", "contiguous", i) for i, one in enumerate(made)]
    expected = backward(*map(wide, grads), wide(h), wide(c), wide(weight), *map(wide, made), reverse)
    for got, wanted in zip(ops.lstm_sequence_backward(*grads, h, c, weight, *made, reverse), expected, strict=True):
        assert_values(got, wanted, scale=500)


@pytest.mark.parametrize("layout", ["transposed", "flipped", "expanded"])
def test_layouts(layout: str) -> None:
    gates, h, c, weight = arguments("float64", 3, 5, 4)
    contiguous = ops.lstm_sequence(gates, h, c, weight, False)
    turned = {
        "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
        "flipped": lambda x: candelabra.stack([x, x], -1)[..., 0],
        "expanded": lambda x: x[..., None].expand(*x.shape, 2)[..., 1],
    }[layout]
    for got, wanted in zip(ops.lstm_sequence(*map(turned, (gates, h, c, weight)), False), contiguous, strict=True):
        assert got.equal(wanted)


@pytest.mark.parametrize("missing", range(3))
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_that_are_not_there(missing: int, reverse: bool) -> None:
    gates, h, c, weight = arguments("float64", 3, 20, 4)
    made = ops.lstm_sequence(gates, h, c, weight, reverse)
    grads = [
        None if i == missing else random_tensor(tuple(one.shape), "float64", "contiguous", i)
        for i, one in enumerate(made)
    ]
    expected = backward(
        *(None if g is None else wide(g) for g in grads), wide(h), wide(c), wide(weight), *map(wide, made), reverse
    )
    for got, wanted in zip(ops.lstm_sequence_backward(*grads, h, c, weight, *made, reverse), expected, strict=True):
        assert_values(got, wanted, scale=100)


def test_no_steps() -> None:
    gates, h, c, weight = arguments("float32", 0, 2, 3)
    made = ops.lstm_sequence(gates, h, c, weight, False)
    assert [tuple(one.shape) for one in made] == [(0, 2, 3), (0, 2, 3), (0, 2, 12)]
    grads = ops.lstm_sequence_backward(None, None, None, h, c, weight, *made, False)
    assert [float(np.abs(wide(one)).sum()) for one in grads] == [0, 0, 0, 0]


def test_large_numbers_saturate() -> None:
    gates, h, c, weight = arguments("float32", 2, 1, 1)
    _, cells, activations = ops.lstm_sequence(gates * 0 + 1e30, h, c * 0 + 1, weight, False)
    assert activations.flatten().tolist() == [1.0] * 8
    assert cells.flatten().tolist() == [2.0, 3.0]
    assert ops.lstm_sequence(gates * candelabra.nan, h, c, weight, False)[0].isnan().all()


def test_shapes_that_do_not_fit() -> None:
    gates, h, c, weight = arguments("float32", 2, 3, 4)
    for call in (
        (gates[0], h, c, weight),
        (gates[..., :-1], h, c, weight),
        (gates, h[:2], c, weight),
        (gates, h, c[:, :3], weight),
        (gates, h, c, weight[:4]),
    ):
        with pytest.raises(RuntimeError, match="do not fit"):
            ops.lstm_sequence(*call, False)
    with pytest.raises(RuntimeError, match="one dtype"):
        ops.lstm_sequence(gates, h.double(), c, weight, False)
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented"):
        ops.lstm_sequence(gates.long(), h, c, weight, False)


CELLS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def layer_arguments(
    cell: str, over_time: tuple[int, ...], batch: int, size: int, hidden: int, dtype: str = "float32"
) -> list[Any]:
    width = CELLS[cell] * hidden
    input, h0 = (
        random_tensor(shape, dtype, "contiguous", i) for i, shape in enumerate([(*over_time, size), (batch, hidden)])
    )
    weight, input_weight = (
        random_tensor((width, n), dtype, "contiguous", n) / max(n, 1) ** 0.5 for n in (hidden, size)
    )
    c0 = random_tensor((batch, hidden), dtype, "contiguous", 2) if cell == "lstm" else None
    bias = random_tensor((width,), dtype, "contiguous", 3) if cell == "gru" else None
    return [input, input_weight, random_tensor((width,), dtype, "contiguous", 4), h0, c0, weight, bias]


def wide_or_none(tensor: Any) -> Any:
    return None if tensor is None else wide(tensor)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("batch", "hidden", "batch_sizes"), [(20, 48, []), (33, 70, [33, 33, 18, 5, 1]), (9, 528, [9, 4]), (20, 528, [])]
)
def test_layers_of_every_cell(cell: str, reverse: bool, batch: int, hidden: int, batch_sizes: list[int]) -> None:
    over_time = (sum(batch_sizes),) if batch_sizes else (3, batch)
    given = layer_arguments(cell, over_time, batch, 37, hidden)
    made = ops.recurrent_layer(*given, batch_sizes, reverse, cell)
    expected = reference.layer(*map(wide_or_none, given), batch_sizes, reverse, cell)
    for got, wanted in zip(made, expected, strict=True):
        assert_values(got, wanted, scale=100)
    output, last = ops.recurrent_layer_states(*given, batch_sizes, reverse, cell)
    assert output.equal(made[0])
    if cell == "lstm":
        states = reference.layer_states(*map(wide_or_none, given), batch_sizes, reverse, cell)
        assert_values(last, states[1], scale=100)
    grads = [random_tensor(tuple(one.shape), "float32", "contiguous", i) for i, one in enumerate(made)]
    rest = (given[3], given[4], given[5], *made)
    back = ops.recurrent_sequence_backward(*grads, *rest, batch_sizes, reverse, cell)
    wanted_back = reference.sequence_backward(*map(wide_or_none, (*grads, *rest)), batch_sizes, reverse, cell)
    for got, wanted in zip(back, wanted_back, strict=True):
        assert_values(got, wanted, scale=1000)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("steps", "batch", "size", "hidden"), [(4, 12, 37, 48), (4, 29, 3, 9), (2, 40, 300, 21), (3, 20, 0, 16)]
)
def test_the_input_of_every_step(cell: str, bias: bool, steps: int, batch: int, size: int, hidden: int) -> None:
    """Sizes whose input is multiplied per step, with remainders of rows and units, and no input
    features.
    """
    given = layer_arguments(cell, (steps, batch), batch, size, hidden, "float64")
    if not bias:
        given[2] = None
    output, last = ops.recurrent_layer_states(*given, [], False, cell)
    states = reference.layer_states(*map(wide_or_none, given), [], False, cell)
    assert_values(output, states[0], scale=100)
    if cell == "lstm":
        assert_values(last, states[1], scale=100)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    given = layer_arguments("gru", (16, 33), 33, 40, 64)
    threads = candelabra.get_num_threads()
    made = []
    try:
        for count in (1, 2, 3):
            candelabra.set_num_threads(count)
            made.append(ops.recurrent_layer(*given, [], False, "gru"))
    finally:
        candelabra.set_num_threads(threads)
    for others in made[1:]:
        assert all(one.equal(first) for one, first in zip(others, made[0], strict=True))


def test_numbers_far_from_one() -> None:
    """Rows outside the range of AMX's bf16x3 emulation take another path. The others are
    unaffected.
    """
    given = layer_arguments("rnn_relu", (4, 24), 24, 40, 64)
    scales = candelabra.ones(24, 1)
    scales[3], scales[20] = 1e-35, 1e35
    given[0], given[3], given[2] = given[0] * scales, given[3] * scales, None
    expected = reference.layer(*map(wide_or_none, given), [], False, "rnn_relu")[0]
    output = ops.recurrent_layer(*given, [], False, "rnn_relu")[0]
    for row in range(24):
        scale = float(scales[row])
        assert_values(output[:, row] / scale, expected[:, row] / scale, scale=200)


def test_states_that_are_no_numbers_stay_in_their_rows() -> None:
    given = layer_arguments("gru", (3, 20), 20, 40, 64)
    whole = ops.recurrent_layer(*given, [], False, "gru")[0]
    given[3][5] = candelabra.nan
    output = ops.recurrent_layer(*given, [], False, "gru")[0]
    assert output[:, 5].isnan().all()
    others = [row for row in range(20) if row != 5]
    assert output[:, others].equal(whole[:, others])


def test_packed_rows_that_do_not_fit() -> None:
    given = layer_arguments("gru", (6,), 3, 4, 5)
    for sizes in ([3, 2], [3, 2, 2], [2, 3, 1], [3, 3, 0], [4, 2]):
        with pytest.raises(RuntimeError, match=r"batch_sizes|do not fit"):
            ops.recurrent_layer(*given, sizes, False, "gru")
    with pytest.raises(ValueError, match="cell must be"):
        ops.recurrent_layer(*given, [3, 3], False, "elman")
    with pytest.raises(RuntimeError, match="c0 is for the cell"):
        ops.recurrent_layer(*given, [3, 3], False, "lstm")


@pytest.mark.parametrize("name", ["recurrent_stack", "recurrent_stack_kept"])
def test_layers_that_do_not_fit(name: str) -> None:
    operator = getattr(ops, name)
    input, h0, weights = candelabra.zeros(2, 1, 5), candelabra.ones(1, 1, 1), candelabra.zeros(3 * (5 + 1))
    with pytest.raises(ValueError, match='cell must be "lstm", "gru"'):
        operator(input, weights, h0, None, [], 1, False, False, "float32")
    for layers, states in ((0, h0), (2**62, h0), (1, h0[0]), (1, candelabra.ones(2, 1, 1))):
        with pytest.raises(RuntimeError, match="do not fit|expected one layer or more"):
            operator(input, weights, states, None, [], layers, False, False, "gru")
    with pytest.raises(RuntimeError, match="do not fit"):
        operator(input[0, 0], weights, h0, None, [], 1, False, False, "gru")
