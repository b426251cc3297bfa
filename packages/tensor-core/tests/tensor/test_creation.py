"""Tensors from Python data, from nothing and back to lists, against NumPy and PyTorch's rules of
dtypes.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candelabra

INFERENCE = [
    (True, "bool"),
    (1, "int64"),
    (1.0, "float32"),
    (1j, "complex64"),
    ([], "float32"),
    ([[], []], "float32"),
    ([True, False], "bool"),
    ([True, 2], "int64"),
    ([1, 2.0], "float32"),
    ([1, 2.0, 3j], "complex64"),
    ([True, 2.5], "float32"),
    ((1, 2), "int64"),
    (range(3), "int64"),
    ([range(3), (4, 5, 6)], "int64"),
    (np.float64(1), "float64"),
    ([np.float32(1), np.int64(3)], "float32"),
    ([np.float64(1), 2], "float64"),
    (np.int32(1), "int32"),
    ([np.int8(1), np.int8(2)], "int8"),
    (np.bool_(True), "bool"),
    (np.complex64(1j), "complex64"),
    (np.arange(3, dtype=np.int16), "int16"),
    ([np.arange(3, dtype=np.float16)], "float16"),
]


@pytest.mark.parametrize(("data", "name"), INFERENCE, ids=[f"{d!r}" for d, _ in INFERENCE])
def test_inferred_dtype_and_values(data: Any, name: str) -> None:
    tensor = candelabra.tensor(data)
    assert tensor.dtype == getattr(candelabra, name)
    expected = np.asarray(data)
    assert tuple(tensor.shape) == expected.shape
    np.testing.assert_array_equal(np.array(tensor.tolist()).reshape(expected.shape), expected.astype(name))


def test_tensors_within_lists() -> None:
    assert candelabra.tensor([candelabra.tensor(1.5, dtype=candelabra.float64), 2]).dtype == candelabra.float64
    assert candelabra.tensor([candelabra.tensor(1), candelabra.tensor(2)]).tolist() == [1, 2]
    ones = [candelabra.tensor([1.0]), candelabra.tensor([[2.0]]), 3]
    assert candelabra.tensor(ones).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        candelabra.tensor([candelabra.arange(3), candelabra.arange(6)[::2]])
    assert candelabra.tensor([[1, 2, 3], candelabra.arange(3)]).tolist() == [[1, 2, 3], [0, 1, 2]]


def test_default_dtype_is_what_floats_become() -> None:
    before = candelabra.get_default_dtype()
    candelabra.set_default_dtype(candelabra.float64)
    try:
        assert candelabra.tensor([1.0]).dtype == candelabra.float64
        assert candelabra.tensor(1j).dtype == candelabra.complex128
        assert candelabra.tensor([1]).dtype == candelabra.int64
        assert candelabra.zeros(2).dtype == candelabra.float64
    finally:
        candelabra.set_default_dtype(before)


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", DTYPES)
def test_given_dtype(name: str) -> None:
    data = [[0, 1, 2], [3, True, 100]]
    tensor = candelabra.tensor(data, dtype=getattr(candelabra, name))
    np.testing.assert_array_equal(tensor.numpy(), np.array(data).astype(name))
    assert tensor.tolist() == np.array(data).astype(name).tolist()
    assert candelabra.tensor(3, dtype=getattr(candelabra, name)).item() == np.array(3).astype(name).item()


def test_large_integers_are_exact() -> None:
    for value in (2**63 - 1, -(2**63), 2**53 + 1):
        assert candelabra.tensor([value]).tolist() == [value]
        assert candelabra.tensor([value, True]).tolist() == [value, 1]
        assert candelabra.tensor(value).item() == value
        assert candelabra.tensor([value, 1.5], dtype=candelabra.int64).tolist() == [value, 1]
    assert candelabra.tensor(2**24 + 1).to(candelabra.float32).item() == 2**24


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(width=64), min_size=1, max_size=8))
def test_floats_become_the_nearest(values: list[float]) -> None:
    with np.errstate(over="ignore"):
        for name in ("float16", "float32", "float64"):
            expected = np.array(values).astype(name)
            np.testing.assert_array_equal(candelabra.tensor(values, dtype=getattr(candelabra, name)).numpy(), expected)
        singles = np.array(values).astype(np.float32)
    bits = (
        candelabra.tensor([float(v) for v in singles], dtype=candelabra.bfloat16)
        .view(candelabra.int16)
        .numpy()
        .view(np.uint16)
    )
    raw = singles.view(np.uint32).astype(np.uint64)
    rounded = ((raw + 0x7FFF + (raw >> 16 & 1)) >> 16).astype(np.uint16)
    finite = ~np.isnan(singles)
    np.testing.assert_array_equal(bits[finite], rounded[finite])
    assert all(math.isnan(v) for v in candelabra.tensor([math.nan], dtype=candelabra.bfloat16).tolist())


def test_every_float16_and_bfloat16_is_read_exactly() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    halves = candelabra.from_numpy(bits.view(np.int16)).view(candelabra.float16)
    np.testing.assert_array_equal(np.array(halves.tolist()), bits.view(np.float16).astype(np.float64))
    brains = candelabra.from_numpy(bits.view(np.int16)).view(candelabra.bfloat16)
    with np.errstate(invalid="ignore"):
        expected = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    np.testing.assert_array_equal(np.array(brains.tolist()), expected)


ERRORS = [
    ([[1, 2, 3], [1, 2]], ValueError, r"expected sequence of length 3 at dim 1 \(got 2\)"),
    ([[1, 2, 3], 1], TypeError, "not a sequence"),
    ([1, [1]], TypeError, "cannot be interpreted"),
    ([[], [1]], ValueError, r"expected sequence of length 0 at dim 1 \(got 1\)"),
    ([[], 1], TypeError, "not a sequence"),
    ("abc", TypeError, "invalid data type 'str'"),
    (b"abc", TypeError, "invalid data type 'bytes'"),
    (["abc"], ValueError, "too many dimensions 'str'"),
    (None, RuntimeError, "Could not infer dtype of NoneType"),
    ([None], RuntimeError, "Could not infer dtype of NoneType"),
    ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
    pytest.param(object(), RuntimeError, "Could not infer dtype of object", id="object"),
    (2**63, ValueError, "Overflow"),
    ([2**70], ValueError, "Overflow"),
    (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
    (np.arange(3, dtype=np.longdouble), TypeError, "numpy.longdouble|numpy.float128"),
]


def test_floats_hold_integers_of_any_length() -> None:
    assert candelabra.tensor([2**70, -(2**70)], dtype=candelabra.float32).tolist() == [2.0**70, -(2.0**70)]
    assert candelabra.tensor(2**64 + 1, dtype=candelabra.complex128).item() == 2.0**64


@pytest.mark.parametrize(("data", "kind", "message"), ERRORS, ids=[repr(e[0])[:30] for e in ERRORS])
def test_bad_data(data: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        candelabra.tensor(data)


def test_unsigned_integers() -> None:
    assert candelabra.tensor(2**64 - 1, dtype=candelabra.uint64).item() == 2**64 - 1
    assert candelabra.tensor([1, 2**63], dtype=candelabra.uint64).tolist() == [1, 2**63]
    assert candelabra.tensor(1e19, dtype=candelabra.uint64).item() == 10**19
    for dtype, top in ((candelabra.uint16, 2**16 - 1), (candelabra.uint32, 2**32 - 1), (candelabra.uint64, 2**64 - 1)):
        made = candelabra.tensor(np.array([0, top], str(dtype).rpartition(".")[2]))
        assert made.dtype is dtype and made.tolist() == [0, top]
        for bad in (-1 - top, top + 1):
            with pytest.raises((RuntimeError, ValueError), match="overflow|Overflow"):
                candelabra.tensor(bad, dtype=dtype)
    with pytest.raises(RuntimeError, match="no dtype holds the values of both"):
        candelabra.tensor([np.uint64(2**63), -1])


def test_data_that_does_not_fit_the_dtype() -> None:
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8 without overflow"):
        candelabra.tensor([300], dtype=candelabra.int8)
    with pytest.raises(RuntimeError, match="uint8 without overflow"):
        candelabra.tensor([-256], dtype=candelabra.uint8)
    with pytest.raises(RuntimeError, match="uint8 without overflow"):
        candelabra.tensor([-1.5], dtype=candelabra.uint8)
    assert candelabra.tensor([-1, -255], dtype=candelabra.uint8).tolist() == [255, 1]
    with pytest.raises(TypeError, match="must be real number, not complex"):
        candelabra.tensor([1j], dtype=candelabra.float32)
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        candelabra.tensor([math.nan], dtype=candelabra.int32)
    assert candelabra.tensor([1.9, -1.9], dtype=candelabra.int8).tolist() == [1, -1]


def test_arrays_of_other_libraries() -> None:
    class Array:
        def __init__(self, tensor: candelabra.Tensor) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    values = candelabra.rand(3)
    copied, shared = candelabra.tensor(Array(values)), candelabra.as_tensor(Array(values))
    values[0] = 7
    assert copied[0] != 7 and shared.tolist() == values.tolist()


def test_storages_are_shared() -> None:
    storage = candelabra.UntypedStorage([1, 2])
    made = candelabra.tensor(storage, dtype=candelabra.uint8)
    storage[0] = 9
    assert made.tolist() == [9, 2] and made.untyped_storage() is storage


def test_a_list_that_holds_itself() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        candelabra.tensor(endless)


def test_a_list_that_changes_while_it_is_read() -> None:
    data: list[Any] = [1.0, 2.0, 3.0]

    class Shrinks:
        def __float__(self) -> float:
            data.clear()
            return 1.0

        def __len__(self) -> int:
            data.clear()
            return 1

        def __getitem__(self, i: int) -> float:
            if i:
                raise IndexError
            return 0.0

    data[:] = [[1.0], Shrinks(), [3.0]]
    with pytest.raises((ValueError, TypeError)):
        candelabra.tensor(data)


def test_tensor_always_copies() -> None:
    array = np.arange(3.0)
    tensor = candelabra.tensor(array)
    array[0] = 9
    assert tensor.tolist() == [0, 1, 2]
    other = candelabra.tensor(tensor)
    other[1] = 9
    assert tensor.tolist() == [0, 1, 2]
    assert candelabra.tensor(np.arange(6).reshape(2, 3)[::-1, ::2]).tolist() == [[3, 5], [0, 2]]
    assert candelabra.tensor(np.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert candelabra.tensor(np.zeros((0, 3))).shape == (0, 3)


def test_as_tensor_shares() -> None:
    array = np.arange(3.0)
    tensor = candelabra.as_tensor(array)
    array[0] = 9
    assert tensor.tolist() == [9, 1, 2]
    assert candelabra.as_tensor(tensor) is tensor
    assert candelabra.as_tensor(tensor, dtype=candelabra.int64).tolist() == [9, 1, 2]


def test_tolist() -> None:
    assert candelabra.tensor(5).tolist() == 5
    assert candelabra.empty(2, 0).tolist() == [[], []]
    assert candelabra.tensor([[True], [False]]).tolist() == [[True], [False]]
    assert candelabra.tensor([1 + 2j]).tolist() == [1 + 2j]
    assert candelabra.arange(6).reshape(2, 3).t()[1:].tolist() == [[1, 4], [2, 5]]


# ---- from nothing


def test_empty() -> None:
    x = candelabra.empty(2, 3, dtype=candelabra.int16)
    assert (x.shape, x.dtype, x.stride()) == ((2, 3), candelabra.int16, (3, 1))
    assert candelabra.empty(()).shape == ()
    assert candelabra.empty((0, 4)).numel() == 0
    y = candelabra.empty(2, 3, 4, 5, memory_format=candelabra.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert y.is_contiguous(memory_format=candelabra.channels_last)
    assert not y.is_contiguous()
    z = candelabra.empty_strided((2, 3), (1, 2))
    assert z.stride() == (1, 2)
    with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -1: \[-1\]"):
        candelabra.empty(-1)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        candelabra.empty(3, memory_format=candelabra.channels_last)
    with pytest.raises(RuntimeError, match=r"dimensionality of sizes \(2\) must match dimensionality of strides"):
        candelabra.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError, match="Negative strides"):
        candelabra.empty_strided((2, 3), (1, -1))
    with pytest.raises(RuntimeError, match="overflow"):
        candelabra.empty(2**40, 2**40)


@settings(max_examples=200, deadline=None)
@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_arange_of_ints(start: int, end: int, step: int) -> None:
    if (end - start) * step < 0:
        with pytest.raises(RuntimeError, match="upper bound and lower bound inconsistent with step sign"):
            candelabra.arange(start, end, step)
    else:
        made = candelabra.arange(start, end, step)
        assert made.dtype == candelabra.int64
        np.testing.assert_array_equal(made.numpy(), np.arange(start, end, step))


def test_arange() -> None:
    np.testing.assert_allclose(
        candelabra.arange(0, 1, 0.1, dtype=candelabra.float64).numpy(), np.arange(0, 1, 0.1), rtol=1e-15
    )
    assert candelabra.arange(2.5).tolist() == [0, 1, 2]
    assert candelabra.arange(2.5).dtype == candelabra.float32
    assert candelabra.arange(3, dtype=candelabra.int8).dtype == candelabra.int8
    assert candelabra.arange(2**62, 2**62 + 3).tolist() == [2**62, 2**62 + 1, 2**62 + 2]
    assert candelabra.arange(0).shape == (0,)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        candelabra.arange(0, 5, 0)
    with pytest.raises(RuntimeError, match="unsupported range: 0 -> nan"):
        candelabra.arange(0, math.nan)
    with pytest.raises(RuntimeError, match="unsupported range"):
        candelabra.arange(0, math.inf)


def test_linspace() -> None:
    np.testing.assert_allclose(candelabra.linspace(-1, 2, 7).numpy(), np.linspace(-1, 2, 7), rtol=1e-6)
    np.testing.assert_allclose(
        candelabra.linspace(3, -3, 10, dtype=candelabra.float64).numpy(), np.linspace(3, -3, 10), rtol=1e-14
    )
    assert candelabra.linspace(0, 1, 1).tolist() == [0]
    assert candelabra.linspace(0, 1, 0).shape == (0,)
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        candelabra.linspace(0, 1, -1)


def test_constants() -> None:
    assert candelabra.zeros(2, 2).tolist() == [[0, 0], [0, 0]]
    assert candelabra.ones((2,), dtype=candelabra.bool).tolist() == [True, True]
    assert candelabra.full((2,), 7).tolist() == [7, 7]
    assert candelabra.full((2,), 7).dtype == candelabra.int64
    assert candelabra.full((1,), 2**53 + 1).item() == 2**53 + 1
    assert candelabra.zeros_like(candelabra.ones(2, 3)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="value cannot be converted to type"):
        candelabra.ones(2).fill_(1j)


def test_the_old_constructor():
    assert (
        candelabra.Tensor(candelabra.Size([2, 3])).shape == (2, 3)
        and candelabra.Tensor(2, 3).shape == (2, 3)
        and candelabra.Tensor().shape == (0,)
    )
    assert candelabra.Tensor([2, 3]).tolist() == [2, 3] and candelabra.Tensor((2, 3)).tolist() == [2, 3]


def test_sizes_given_as_tensors():
    x = candelabra.arange(6)
    assert x.view(candelabra.tensor(2), 3).shape == (2, 3) and x.view(2, candelabra.tensor(3)).shape == (2, 3)


# ---- what the core takes without a step of Python, and what goes on to the functions behind the
# operators


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.arange("a"), lambda c: c.arange(None), lambda c: c.arange(5, None), lambda c: c.arange(object()),
        lambda c: c.arange(3, dtype="float32"), lambda c: c.arange(2.5, dtype=3), lambda c: c.zeros("a"), lambda c: c.ones(2, dtype="x"),
        lambda c: c.empty([1.5]), lambda c: c.full((2,), "a"), lambda c: c.zeros(2, size=(2,)),
    ],
)  # fmt: skip
def test_arguments_of_no_form_are_refused_once(call):
    with pytest.raises(TypeError):
        call(candelabra)


def test_forms_that_fit_no_schema():
    assert candelabra.arange(end=3).tolist() == [0, 1, 2]
    assert candelabra.arange(1, end=3).tolist() == [1, 2]
    assert candelabra.arange(5.5, dtype=int).tolist() == [0, 1, 2, 3, 4]
    assert candelabra.arange(1, 2.5, dtype=candelabra.int32).tolist() == [1, 2]
    assert candelabra.arange(2.0, requires_grad=True).requires_grad
    assert candelabra.zeros(candelabra.tensor(2)).tolist() == [0, 0]
    assert candelabra.zeros(2, layout=candelabra.strided, pin_memory=False).tolist() == [0, 0]
    assert candelabra.full((1,), np.float32(2)).dtype is candelabra.float32
    assert candelabra.full((1,), candelabra.tensor(2)).dtype is candelabra.int64
    out = candelabra.empty(0, dtype=candelabra.float64)
    assert candelabra.arange(3, out=out) is out and out.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "full"])
def test_gradients_are_asked_for_where_they_can_be(name):
    value = (1,) if name == "full" else ()
    make = getattr(candelabra, name)
    made = make((2, 3), *value, dtype=candelabra.float64, requires_grad=True)
    assert made.requires_grad and made.is_leaf and made.shape == (2, 3) and made._version == 0
    with pytest.raises(RuntimeError, match="floating point"):
        make((2,), *value, dtype=candelabra.int64, requires_grad=True)
    if not candelabra.accelerator.is_available():
        with pytest.raises(RuntimeError, match="accelerator|NVIDIA|driver"):
            make((2,), *value, pin_memory=True)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool", "uint8", "int16", "uint64", "bfloat16"])
def test_unset_memory_is_conspicuous_where_asked_for(dtype):
    dtype = getattr(candelabra, dtype)
    candelabra.use_deterministic_algorithms(True)
    try:
        made = candelabra.empty(3, dtype=dtype)
    finally:
        candelabra.use_deterministic_algorithms(False)
    if dtype.is_floating_point or dtype.is_complex:
        assert candelabra.isnan(made).all()
    else:
        assert made.tolist() == [True if dtype is candelabra.bool else candelabra.iinfo(dtype).max] * 3


def test_few_elements_and_many_are_filled_alike():
    for count in (0, 1, 3, 64, 65, 1000):
        for dtype in (candelabra.float32, candelabra.float16, candelabra.complex128, candelabra.int8, candelabra.bool):
            assert candelabra.full((count,), 1, dtype=dtype).tolist() == [1] * count


def test_split_and_reshape_are_views():
    x = candelabra.arange(12).view(3, 4)
    parts = x.split(2)
    assert [part.tolist() for part in parts] == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10, 11]]]
    parts[1][0, 0] = -1
    assert x[2, 0].item() == -1 and parts[0]._base is x._base
    assert [tuple(part.shape) for part in x.split(3, -1)] == [(3, 3), (3, 1)]
    flat = x.reshape(12)
    flat[0] = 7
    assert x[0, 0].item() == 7
    copied = x.t().reshape(12)
    copied[0] = 9
    assert x[0, 0].item() == 7
    with pytest.raises(RuntimeError, match="non-negative"):
        x.split(-1)
    with pytest.raises(IndexError):
        x.split(1, 2)


def test_sizes_that_are_used_again_are_new():
    sizes = [candelabra.empty(i, 2).shape for i in range(100)]
    assert [tuple(size) for size in sizes] == [(i, 2) for i in range(100)]
    del sizes
    again = [candelabra.empty(i + 1, 3).shape for i in range(100)]
    assert [tuple(size) for size in again] == [(i + 1, 3) for i in range(100)]
    assert all(hash(size) == hash(tuple(size)) for size in again)


def test_to_returns_the_tensor_where_nothing_is_to_convert():
    x = candelabra.ones(2)
    assert x.to(candelabra.float32) is x and x.to("cpu") is x and x.to("cpu", candelabra.float32) is x and x.to(x) is x
    assert (
        x.to("cpu", candelabra.int32).dtype is candelabra.int32 and x.to(dtype=candelabra.int8).dtype is candelabra.int8
    )
    assert x.to(candelabra.float32, copy=True) is not x


@pytest.mark.parametrize(
    "make",
    [
        lambda out: candelabra.linspace(0, 2, 3, out=out),
        lambda out: candelabra.arange(3, out=out),
        lambda out: candelabra.arange(0.0, 3.0, 1.0, out=out),
        lambda out: candelabra.range(0, 2, out=out),
        lambda out: candelabra.logspace(0, 2, 3, out=out).log10_(),
    ],
    ids=["linspace", "arange", "arange of floats", "range", "logspace"],
)
def test_ranges_are_written_to_views(make):
    base = candelabra.zeros(6)
    make(base[::2])
    assert base.tolist() == [0, 0, 1, 0, 2, 0]
    base = candelabra.zeros(3, 2)
    column = base[:, :1]
    make(column)  # the shape stays: it has as many elements
    assert column.shape == (3, 1)
    assert base[:, 0].tolist() == [0, 1, 2]
    base = candelabra.zeros(4)
    with pytest.warns(UserWarning, match="was resized"):
        make(base[1:2])
    assert base.tolist() == [0, 0, 1, 2]
    empty = candelabra.empty(0)
    assert make(empty) is empty
    assert empty.tolist() == [0, 1, 2]


def test_type_names_and_devices():
    x = candelabra.zeros(2)
    assert x.type() == "candelabra.FloatTensor"
    assert x.type("candelabra.LongTensor").dtype is candelabra.int64
    with pytest.raises(RuntimeError):
        x.type("candelabra.no_such_device.FloatTensor")


def test_a_given_device_index_is_kept():
    cpu, first = candelabra.device("cpu"), candelabra.device("cpu", 0)
    assert (str(cpu), repr(cpu), cpu.index) == ("cpu", "device(type='cpu')", None)
    for same in (first, candelabra.device("cpu:0"), candelabra.device(first), pickle.loads(pickle.dumps(first))):
        assert (str(same), repr(same), same.index) == ("cpu:0", "device(type='cpu', index=0)", 0)
        assert same == first
        assert same != cpu
    assert candelabra.zeros(1, device=first).device == cpu
    x = candelabra.zeros(1)
    assert x.to(first) is x
