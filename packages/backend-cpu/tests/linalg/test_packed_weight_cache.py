"""Test oneDNN's packed-weight cache: it follows every change of a weight, and frees its memory."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import candelabra

SHAPE = (64, 64, 3, 3)
BYTES = 64 * 64 * 9 * 4
X = np.random.default_rng(1).standard_normal((1, 64, 8, 8)).astype(np.float32)


def convolve(x: Any, weight: Any) -> Any:
    """Convolve with stride 2, which goes to oneDNN and needs a reordered weight."""
    return candelabra.ops.convolution(x, weight, None, [2, 2], [1, 1], [1, 1], 1)


def expected(weight: np.ndarray) -> np.ndarray:
    padded = np.pad(X.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwyx,kcyx->nkhw", windows, weight.astype(np.float64), optimize=True)


def check(x: Any, weight: Any, values: np.ndarray) -> None:
    np.testing.assert_allclose(convolve(x, weight).tolist(), expected(values), rtol=1e-4, atol=1e-4)


def allocated() -> int:
    return candelabra.backends.memory_statistics("cpu")["allocated"]


def draw(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def own_tensor(values: np.ndarray) -> Any:
    """Copy to memory of the backend, whose address nobody else has."""
    return candelabra.from_numpy(values).clone()


@pytest.fixture
def used() -> tuple[Any, Any, np.ndarray]:
    """Return an input, and a weight that is in the cache, with its values."""
    x, values = own_tensor(X), draw(2)
    weight = own_tensor(values)
    for _ in range(3):
        check(x, weight, values)
    return x, weight, values


def test_a_weight_is_kept_from_its_second_use_on_and_given_back_with_it() -> None:
    x, weight = own_tensor(X), own_tensor(draw(3))
    candelabra.backends.empty_cache("cpu")
    before = allocated()
    convolve(x, weight)
    assert allocated() == before
    convolve(x, weight)
    assert before + BYTES <= allocated() <= before + BYTES * 5 // 4
    kept = allocated()
    convolve(x, weight)
    assert allocated() == kept
    del weight
    gc.collect()
    assert allocated() < before


def test_empty_cache_gives_kept_weights_back(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    before = allocated()
    candelabra.backends.empty_cache("cpu")
    assert allocated() <= before - BYTES
    check(x, weight, values)


def in_place(weight: Any) -> None:
    weight.mul_(2)


def through_data(weight: Any) -> None:
    weight.data.mul_(2)


def through_a_view(weight: Any) -> None:
    weight.view(-1)[:].mul_(2)


def by_assignment(weight: Any) -> None:
    weight[...] = weight * 2


def into_out(weight: Any) -> None:
    candelabra.add(weight.clone(), weight.clone(), out=weight)


def by_numpy(weight: Any) -> None:
    array = weight.numpy()
    array *= 2


def by_dlpack(weight: Any) -> None:
    candelabra.from_dlpack(weight.__dlpack__()).mul_(2)


def by_memoryview(weight: Any) -> None:
    with memoryview(weight) as view:
        array = np.asarray(view)
        array *= 2
        del array


def by_address(weight: Any) -> None:
    values = np.array((weight * 2).tolist(), np.float32)
    ctypes.memmove(weight.data_ptr(), values.ctypes.data, BYTES)


def by_other_memory(weight: Any) -> None:
    weight.data = weight * 2


def by_other_storage(weight: Any) -> None:
    weight.set_(weight * 2)


CHANGES = [
    in_place, through_data, through_a_view, by_assignment, into_out, by_numpy, by_dlpack, by_memoryview, by_address, by_other_memory, by_other_storage,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_is_seen(change: Callable[[Any], None], used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    for factor in (2, 4):
        change(weight)
        for _ in range(3):
            check(x, weight, values * factor)


def test_an_array_that_lives_on_may_write_at_any_time(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    array = weight.numpy()
    for factor in (2, 4, 8):
        array *= 2
        check(x, weight, values * factor)
        check(x, weight, values * factor)


def test_an_address_that_was_handed_out_may_be_written_at_any_time(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    address = weight.data_ptr()
    for factor in (2, 4, 8):
        changed = values * factor
        ctypes.memmove(address, changed.ctypes.data, BYTES)
        check(x, weight, values * factor)
        check(x, weight, values * factor)


def test_memory_of_others_is_not_kept() -> None:
    x, values = own_tensor(X), draw(5)
    weight = candelabra.from_numpy(values)
    for _ in range(3):
        values *= 2
        check(x, weight, values)


def test_another_weight_at_the_same_address() -> None:
    x = own_tensor(X)
    for seed in range(6):
        values = draw(seed)
        weight = own_tensor(values)
        for _ in range(3):
            check(x, weight, values)
        del weight


def test_views_of_one_memory_are_kept_apart() -> None:
    x, values = own_tensor(X), np.concatenate([draw(7), draw(8)])
    both = own_tensor(values)
    for _ in range(3):
        check(x, both[:64], values[:64])
        check(x, both[64:], values[64:])
        check(x, both[:64].flip(0).flip(0), values[:64])
        check(x, both[:64].transpose(2, 3), values[:64].transpose(0, 1, 3, 2))
    both[64:].mul_(2)
    check(x, both[:64], values[:64])
    check(x, both[64:], values[64:] * 2)


def test_the_gradient_of_the_input_uses_a_layout_of_its_own(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    grad = candelabra.ones(1, 64, 4, 4)

    def gradient() -> list[Any]:
        return candelabra.ops.convolution_backward_input(
            grad, weight, [1, 64, 8, 8], [2, 2], [1, 1], [1, 1], 1
        ).tolist()

    first = gradient()
    assert gradient() == first == gradient()
    weight.mul_(2)
    np.testing.assert_allclose(gradient(), 2 * np.array(first), rtol=1e-5)
    check(x, weight, values * 2)


def test_threads_use_one_weight(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    wanted = expected(values)
    wrong: list[int] = []

    def work(number: int) -> None:
        mine = own_tensor(values)
        for _ in range(20):
            for each in (weight, mine):
                if not np.allclose(convolve(x, each).tolist(), wanted, atol=1e-3):
                    wrong.append(number)
            mine.add_(0)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    weight.mul_(2)
    check(x, weight, values * 2)


def test_a_limit_of_memory_takes_kept_weights_first(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    candelabra.backends.set_memory_limit("cpu", allocated() + BYTES // 2)
    try:
        more = candelabra.empty(BYTES // 4)
        assert more.numel() == BYTES // 4
    finally:
        candelabra.backends.set_memory_limit("cpu", None)
    check(x, weight, values)


def test_a_forked_child_has_them_too(used: tuple[Any, Any, np.ndarray]) -> None:
    x, weight, values = used
    child = os.fork()
    if child == 0:
        code = 1
        try:
            check(x, weight, values)
            weight.mul_(2)
            check(x, weight, values * 2)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    check(x, weight, values)
