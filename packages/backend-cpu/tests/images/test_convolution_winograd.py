"""Test 3x3 convolutions large enough for Winograd's algorithm against a direct sum in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import backend, call
from test_convolution import Case, channels_last, check, garbage, random, windows


def square(batch: int, channels: tuple[int, int], size: tuple[int, int], padding: int) -> Case:
    return Case(batch, channels, size, (3, 3), (1, 1), (padding, padding), (1, 1))


CASES = {
    "many tiles": square(2, (32, 48), (20, 24), 1),
    "sides that are no multiple of a tile": square(3, (48, 32), (17, 23), 1),
    "no padding": square(2, (32, 32), (18, 22), 0),
    "full padding": square(2, (32, 80), (15, 18), 2),
    "fewer tiles than channels": square(7, (64, 160), (8, 8), 1),
    "one tile an image": square(33, (48, 112), (4, 4), 1),
    "a row of more tiles than a block": square(1, (32, 32), (6, 300), 1),
    "several chunks of the weight's gradient": square(1, (64, 32), (160, 120), 1),
    "many more channels than tiles": square(9, (176, 144), (7, 8), 1),
    "chunks of few tiles of many channels": square(97, (528, 400), (3, 3), 1),
}


def forward(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Compute one matrix product per kernel offset. These cases are too large for a sum over
    windows.
    """
    view = windows(case, np.pad(x, [(0, 0), (0, 0), *((p, p) for p in case.padding)]))[:, 0]
    return sum(np.tensordot(w[:, :, y, x], view[:, :, y, x], (1, 1)) for y in range(3) for x in range(3)).swapaxes(0, 1)


def weight_gradient(case: Case, grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    view = windows(case, np.pad(x, [(0, 0), (0, 0), *((p, p) for p in case.padding)]))[:, 0]
    taps = [np.tensordot(grad, view[:, :, y, x], ((0, 2, 3), (0, 2, 3))) for y in range(3) for x in range(3)]
    return np.stack(taps, -1).reshape(case.weight_shape)


def input_gradient(case: Case, grad: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Convolve with the weight rotated by 180 degrees and its channels exchanged."""
    across = square(case.batch, case.channels[::-1], grad.shape[2:], 2 - case.padding[0])
    return forward(across, grad, w[:, :, ::-1, ::-1].swapaxes(0, 1))


LARGE = ("several chunks of the weight's gradient", "chunks of few tiles of many channels")


@pytest.mark.parametrize(
    ("name", "memory"),
    [(name, "contiguous") for name in CASES]
    + [(name, memory) for name in CASES if name not in LARGE for memory in ("channels_last", "weights too")],
)
def test_convolution(name: str, memory: str) -> None:
    case = CASES[name]
    place = (lambda value: value) if memory == "contiguous" else channels_last
    place_weight = channels_last if memory == "weights too" else (lambda value: value)
    x, w = place(random(case.input_shape, "float32", 0)), place_weight(random(case.weight_shape, "float32", 1))
    bias, grad = random((case.channels[1],), "float32", 2), place(random(case.output_shape, "float32", 3))
    wide_x, wide_w, wide_grad = (value.astype(np.float64) for value in (x, w, grad))

    out = place(garbage(case.output_shape, "float32"))
    call("convolution", [out], x, w, bias, *case.arguments)
    offset = bias.astype(np.float64).reshape(-1, 1, 1)
    check(out, forward(case, wide_x, wide_w) + offset, forward(case, np.abs(wide_x), np.abs(wide_w)) + np.abs(offset))

    result = place(garbage(case.input_shape, "float32"))
    call("convolution_backward_input", [result], grad, w, list(case.input_shape), *case.arguments)
    check(result, input_gradient(case, wide_grad, wide_w), input_gradient(case, np.abs(wide_grad), np.abs(wide_w)))

    result = place_weight(garbage(case.weight_shape, "float32"))
    call("convolution_backward_weight", [result], grad, x, list(case.weight_shape), *case.arguments)
    check(result, weight_gradient(case, wide_grad, wide_x), weight_gradient(case, np.abs(wide_grad), np.abs(wide_x)))


def test_what_is_not_finite_stays_in_its_windows() -> None:
    case = square(2, (32, 32), (20, 20), 1)
    x, w = np.ones(case.input_shape, np.float32), np.ones(case.weight_shape, np.float32)
    x[0, 3, 2, 2], x[1, 7, 13, 17] = np.nan, np.inf
    out = garbage(case.output_shape, "float32")
    call("convolution", [out], x, w, None, *case.arguments)
    np.testing.assert_array_equal(out, forward(case, x.astype(np.float64), w.astype(np.float64)).astype(np.float32))
    gradient = garbage(case.weight_shape, "float32")
    call(
        "convolution_backward_weight",
        [gradient],
        np.ones(case.output_shape, np.float32),
        x,
        list(case.weight_shape),
        *case.arguments,
    )
    assert np.isnan(gradient[:, 3]).all()
    assert np.isposinf(gradient[:, 7]).all()
    assert np.isfinite(gradient[:, [0, 1, 2, 4, 5, 6, 8]]).all()


def test_numbers_near_the_largest_do_not_overflow_on_the_way() -> None:
    case = square(1, (32, 32), (24, 24), 1)
    x, w = random(case.input_shape, "float32", 0), random(case.weight_shape, "float32", 1)
    x = (x / np.abs(x).max() * np.float32(2e38)).astype(np.float32)
    w = (w / np.abs(w).sum((1, 2, 3), keepdims=True)).astype(np.float32)
    out = garbage(case.output_shape, "float32")
    call("convolution", [out], x, w, None, *case.arguments)
    check(
        out,
        forward(case, x.astype(np.float64), w.astype(np.float64)),
        forward(case, np.abs(x.astype(np.float64)), np.abs(w.astype(np.float64))),
    )


@pytest.mark.parametrize("name", ["many tiles", "many more channels than tiles"])
@pytest.mark.parametrize("scales", [(1e-33, 1.0), (1.0, 1e-31), (1e-18, 1e-14)])
def test_small_numbers_keep_their_digits(name: str, scales: tuple[float, float]) -> None:
    """In the bf16x3 emulation, parts of these numbers or their products underflow bfloat16."""
    case = CASES[name]
    x, w = (random(case.input_shape, "float32", 0) * np.float32(scales[0])), random(case.weight_shape, "float32", 1)
    w = w * np.float32(scales[1])
    grad = random(case.output_shape, "float32", 2) * np.float32(scales[1])
    out, gradient = garbage(case.output_shape, "float32"), garbage(case.weight_shape, "float32")
    call("convolution", [out], x, w, None, *case.arguments)
    call("convolution_backward_weight", [gradient], grad, x, list(case.weight_shape), *case.arguments)
    wide_x, wide_w, wide_grad = (value.astype(np.float64) for value in (x, w, grad))
    check(out, forward(case, wide_x, wide_w), forward(case, np.abs(wide_x), np.abs(wide_w)))
    check(gradient, weight_gradient(case, wide_grad, wide_x), weight_gradient(case, np.abs(wide_grad), np.abs(wide_x)))


@pytest.mark.parametrize("name", ["many tiles", "fewer tiles than channels", "many more channels than tiles", *LARGE])
def test_results_do_not_depend_on_threads(name: str) -> None:
    case = CASES[name]
    x, w, grad = (
        random(shape, "float32", i) for i, shape in enumerate((case.input_shape, case.weight_shape, case.output_shape))
    )
    results: list[list[Any]] = []
    threads = backend().table.thread_count()
    try:
        for count in (1, 2, 5):
            backend().table.set_thread_count(count)
            results.append(
                [garbage(shape, "float32") for shape in (case.output_shape, case.input_shape, case.weight_shape)]
            )
            call("convolution", [results[-1][0]], x, w, None, *case.arguments)
            call("convolution_backward_input", [results[-1][1]], grad, w, list(case.input_shape), *case.arguments)
            call("convolution_backward_weight", [results[-1][2]], grad, x, list(case.weight_shape), *case.arguments)
    finally:
        backend().table.set_thread_count(threads)
    for others in results[1:]:
        for first, other in zip(results[0], others, strict=True):
            assert first.tobytes() == other.tobytes()


SWITCHED_OFF = """
import numpy as np
from harness import call
x = np.zeros((1, 32, 24, 24), np.float32)
x[0, 0, 5, 5] = 3e7
w, out = np.full((32, 32, 3, 3), 1 / 3, np.float32), np.empty((1, 32, 24, 24), np.float32)
call("convolution", [out], x, w, None, [1, 1], [1, 1], [1, 1], 1)
outside = np.ones((24, 24), bool)
outside[4:7, 4:7] = False
print(np.abs(out[0, :, outside]).max() == 0)
"""


def test_the_environment_switches_it_off() -> None:
    # Beside a large number, the direct sum has exact zeros, but a transformed tile has rounding
    # errors.
    found = subprocess.run(
        [sys.executable, "-c", SWITCHED_OFF],
        env=os.environ | {"CANDELABRA_CPU_WINOGRAD": "0"}, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == "True"
