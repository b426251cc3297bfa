"""Every operator with a kernel is deterministic on one, two and three threads.

Operators that hand their work to a library are left out by name: how that library shares it among
threads, and so the order in which it adds, is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from shared_calls import COLUMNS, RECIPES, ROWS, Maker, recipe_of

import candelabra
from candelabra.catalogue import FAMILIES, OPERATORS
from candelabra.testing.reference import references

Tensor = candelabra.Tensor

#: Operators whose sums are a library's.
LIBRARIES = {
    "MKL's matrix products": ["_addmm_activation", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "linear"],
    "matrix products of tiles": ["_scaled_dot_product_attention", "_scaled_dot_product_attention_backward"],
    "matrix products of steps": [
        "lstm_sequence_backward",
        "recurrent_sequence_backward",
        "recurrent_layer",
        "recurrent_layer_states",
    ],
    "oneDNN's convolutions": ["convolution", "convolution_backward_input", "convolution_backward_weight"],
    "MKL's LAPACK": [*FAMILIES["factorization"], *FAMILIES["spectral"], *FAMILIES["solving"]],
    "MKL's Fourier transforms": FAMILIES["fft"],
}
EXCEPTED = {name: reason for reason, names in LIBRARIES.items() for name in names}
KERNELS = [name for name, operator in OPERATORS.items() if operator.has_kernel("cpu")]
#: Dtypes that are tried where the operator has them.
DTYPES = ("float32", "bfloat16", "complex64", "int64")
REFERENCES = references()


def _tensors(results: Any) -> Iterator[Tensor]:
    if isinstance(results, Tensor):
        yield results
    elif isinstance(results, (list, tuple)):
        for result in results:
            yield from _tensors(result)


def _bits(tensor: Tensor) -> bytes:
    """What is in memory, but for NaN, of which there are many."""
    array = (
        (tensor.to(candelabra.float32) if tensor.dtype == candelabra.bfloat16 else tensor).contiguous().numpy().copy()
    )
    if array.dtype.kind in "fc":
        array[np.isnan(array)] = np.nan
    return array.tobytes()


@pytest.fixture
def _restored_threads() -> Iterator[None]:
    count = candelabra.get_num_threads()
    yield
    candelabra.set_num_threads(count)


@pytest.mark.usefixtures("_restored_threads")
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in EXCEPTED])
def test_operator(name: str) -> None:
    recipe, ran = recipe_of(name), 0
    supported = REFERENCES[name].dtypes if name in REFERENCES else DTYPES
    for dtype in [dtype for dtype in DTYPES if dtype in supported] or supported[:1]:
        for number, call in enumerate(recipe(Maker(dtype))):
            seen = []
            for threads in (1, 2, 3):
                candelabra.set_num_threads(threads)
                try:
                    seen.append([_bits(tensor) for tensor in _tensors(call())])
                except NotImplementedError:  # of a dtype that this kernel has none for
                    break
            if seen:
                assert seen[0], f"{name} returned no tensor"
                assert seen[0] == seen[1] == seen[2], (
                    f"call {number} of {name} in {dtype} depends on the number of threads"
                )
                ran += 1
    assert ran, f"no dtype of {name} was tried"


def _is_plain(name: str) -> bool:
    """Whether it is an elementwise operator of floating-point tensors and nothing else; not a
    polynomial, which takes long of such numbers.
    """
    elementwise = (
        name in (*FAMILIES["elementwise"], *FAMILIES["special"]) and name not in RECIPES and "polynomial" not in name
    )
    return elementwise and "float32" in (REFERENCES[name].dtypes if name in REFERENCES else DTYPES)


@pytest.mark.usefixtures("_restored_threads")
@pytest.mark.parametrize("name", [name for name in KERNELS if _is_plain(name)])
def test_numbers_for_which_there_is_another_way(name: str) -> None:
    """Infinities and large numbers here and there: those beside them in a block are others with
    each number of threads.
    """
    random = np.random.default_rng(1)
    tensors = []
    for _ in range(OPERATORS[name].schema.split(" ->")[0].split("*")[0].count("Tensor ")):
        x = random.uniform(-9, 9, ROWS * COLUMNS).astype(np.float32)
        x[random.integers(0, len(x), 60)] = random.choice([np.inf, -np.inf, np.nan, 1e30, -1e9, 0.0, 1e-40], 60)
        tensors.append(candelabra.tensor(x))
    seen = []
    for threads in (1, 2, 3):
        candelabra.set_num_threads(threads)
        seen.append([_bits(tensor) for tensor in _tensors(OPERATORS[name](*tensors))])
    assert seen[0] == seen[1] == seen[2]


def test_what_is_left_out_has_a_kernel() -> None:
    assert set(EXCEPTED) <= set(OPERATORS)
    assert len(KERNELS) - len(EXCEPTED) > 180
