"""tensor[key] and tensor[key] = value against NumPy, for basic and advanced keys and both mixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candelabra

SIZES = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def reference_keys(array: np.ndarray, key: tuple) -> tuple[tuple, tuple]:
    """NumPy keys to be applied one after the other.

    PyTorch takes ints in a mixed key as basic parts, NumPy as arrays; applying the basic parts
    first makes NumPy agree.
    """
    taken = sum(
        0 if k is None or k is Ellipsis else k.ndim if isinstance(k, np.ndarray) and k.dtype == bool else 1 for k in key
    )
    basic: list[Any] = []
    advanced: list[Any] = []
    for k in key if any(k is Ellipsis for k in key) else (*key, Ellipsis):
        if isinstance(k, np.ndarray):
            dims = k.ndim if k.dtype == bool else 1
            basic += [slice(None)] * dims
            advanced.append(k)
        elif k is Ellipsis:
            basic += [slice(None)] * (array.ndim - taken)
            advanced += [slice(None)] * (array.ndim - taken)
        else:
            basic.append(k)
            if not isinstance(k, int):
                advanced.append(slice(None))
    return (*basic, Ellipsis), tuple(advanced)


@st.composite
def keys(draw: st.DrawFn, sizes: list[int], advanced: bool) -> tuple:
    key: list[Any] = []
    shape = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 2), (2, 1)])) if advanced else ()
    count = draw(st.integers(0, len(sizes)))
    skip_at = draw(st.integers(0, count)) if draw(st.booleans()) else -1
    dims: list[int] = list(range(len(sizes)))
    if skip_at >= 0:
        dims = dims[:skip_at] + dims[len(sizes) - (count - skip_at) :]
    else:
        dims = dims[:count]
    position = 0
    while position < len(dims):
        if position == skip_at:
            key.append(Ellipsis)
        if draw(st.integers(0, 7)) == 0:
            key.append(None)
        dim = dims[position]
        size = sizes[dim]
        kinds = ["slice", "slice"] + (["int"] if size else []) + (["array", "array", "mask"] if advanced else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
            key.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3]))))
        elif kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
        elif kind == "array":
            used = shape if size else (0,)
            values = draw(
                st.lists(st.integers(-size, max(size - 1, 0)), min_size=int(np.prod(used)), max_size=int(np.prod(used)))
            )
            # an array of one row or column broadcasts with the others
            key.append(np.array(values, np.int64).reshape(used))
        else:
            # two dimensions where the next one follows and is not behind the ellipsis
            wide = (
                position + 1 < len(dims)
                and dims[position + 1] == dim + 1
                and position + 1 != skip_at
                and draw(st.booleans())
            )
            mask_sizes = sizes[dim : dim + 2] if wide else [size]
            total = int(np.prod(mask_sizes))
            bits = draw(st.lists(st.booleans(), min_size=total, max_size=total))
            key.append(np.array(bits, bool).reshape(mask_sizes))
            position += wide
        position += 1
    if skip_at >= len(dims):
        key.append(Ellipsis)
    return tuple(key)


def ours(key: tuple) -> tuple:
    # arrays without dimensions are ints for both
    return tuple(candelabra.tensor(k) if isinstance(k, np.ndarray) else k for k in key)


def zero_dim_arrays_as_ints(key: tuple) -> tuple:
    return tuple(int(k) if isinstance(k, np.ndarray) and k.ndim == 0 else k for k in key)


@settings(max_examples=400, deadline=None)
@given(st.data(), SIZES, st.booleans())
def test_reading_is_numpys(data: st.DataObject, sizes: list[int], advanced: bool) -> None:
    key = data.draw(keys(sizes, advanced))
    array = np.arange(int(np.prod(sizes)), dtype=np.float32).reshape(sizes)
    basic, rest = reference_keys(array, zero_dim_arrays_as_ints(key))
    tensor = candelabra.tensor(array)
    try:
        expected = array[basic][rest]
    except IndexError:
        with pytest.raises(IndexError):
            tensor[ours(key)]
        return
    result = tensor[ours(key)]
    assert tuple(result.shape) == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)
    if not any(isinstance(k, np.ndarray) for k in zero_dim_arrays_as_ints(key)):
        assert result._base is tensor


@settings(max_examples=400, deadline=None)
@given(st.data(), SIZES, st.booleans(), st.sampled_from(["number", "whole", "row"]))
def test_writing_is_numpys(data: st.DataObject, sizes: list[int], advanced: bool, what: str) -> None:
    key = data.draw(keys(sizes, advanced))
    array = np.arange(int(np.prod(sizes)), dtype=np.float32).reshape(sizes)
    tensor = candelabra.tensor(array)
    basic, rest = reference_keys(array, zero_dim_arrays_as_ints(key))
    view = array[basic]
    try:
        shape = view[rest].shape
    except IndexError:
        with pytest.raises(IndexError):
            tensor[ours(key)] = 1
        return
    if what == "number":
        value: Any = -5.5
    else:
        if what == "row":
            shape = shape[1:]
        value = np.full(shape, -1, np.float32)  # one value: an index may name an element twice
    view[rest] = value
    tensor[ours(key)] = candelabra.tensor(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_writing_distinct_values() -> None:
    array = np.zeros((3, 4, 5), np.float32)
    tensor = candelabra.zeros(3, 4, 5)
    values = np.arange(2 * 4, dtype=np.float32).reshape(2, 4)
    array[[0, 2], :, 3] = values
    tensor[[0, 2], :, 3] = candelabra.tensor(values)
    np.testing.assert_array_equal(tensor.numpy(), array)
    rows = np.array([[0], [1]])
    columns = np.array([1, 3])
    array[rows, columns] = 9
    tensor[candelabra.tensor(rows), candelabra.tensor(columns)] = 9
    np.testing.assert_array_equal(tensor.numpy(), array)
    mask = array > 2
    array[mask] = np.arange(mask.sum(), dtype=np.float32)
    tensor[tensor > 2] = candelabra.arange(int(mask.sum()), dtype=candelabra.float32)
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize(
    "key",
    [
        [0, 2],
        (0, 2),
        ([0, 2], [1, 1]),
        range(2),
        np.array([2, 0], np.int32),
        np.array([1, 0], np.int8),
        np.array([True, False, True]),
        [True, False, True],
        [],
        np.int64(1),
        np.array(2),
        (slice(None), [3, 0, 0]),
        ([1], slice(None)),
        (None, [0, 1]),
        (Ellipsis, [0, 3]),
        ((0, 1),),
    ],
    ids=repr,
)
def test_lists_arrays_and_numpy_numbers(key: Any) -> None:
    array = np.arange(12).reshape(3, 4)
    tensor = candelabra.tensor(array)
    reference = np.array(key, int) if isinstance(key, list) and not key else key
    expected = array[reference]
    np.testing.assert_array_equal(tensor[key].numpy(), expected)


def test_bool_scalars_add_a_dimension() -> None:
    array = np.arange(6).reshape(2, 3)
    tensor = candelabra.tensor(array)
    for key in (True, False, (True, 0), (slice(None), True), (None, False), (np.True_,), (Ellipsis, True)):
        np.testing.assert_array_equal(tensor[key].numpy(), array[key])
    for truth in (True, False):
        assert tensor[candelabra.tensor(truth)].shape == array[truth].shape
    tensor[False] = 99
    assert tensor.tolist() == array.tolist()
    tensor[True] = 7
    assert tensor.tolist() == [[7] * 3] * 2


def test_a_mixed_int_is_basic_as_in_pytorch() -> None:
    tensor = candelabra.arange(24).reshape(2, 3, 4)
    assert tensor[0, :, [1, 2]].shape == (3, 2)
    assert tensor[[0, 1], :, [1, 2]].shape == (2, 3)
    assert tensor[candelabra.tensor(0), :, [1, 2]].shape == (3, 2)


def test_uint8_is_a_mask_with_a_warning() -> None:
    tensor = candelabra.arange(3)
    with pytest.warns(UserWarning, match="uint8"):
        assert tensor[candelabra.tensor([1, 0, 1], dtype=candelabra.uint8)].tolist() == [0, 2]


def test_views_are_written_through() -> None:
    x = candelabra.zeros(3, 4)
    row = x[1]
    x[:, 1] = candelabra.tensor([1.0, 2.0, 3.0])
    row[0] = 5
    x[2, ::2] += 1
    assert x.tolist() == [[0, 1, 0, 0], [5, 2, 0, 0], [1, 3, 1, 0]]


def test_every_write_is_counted_once() -> None:
    x = candelabra.zeros(3, 4)
    for key, value in [
        (0, 1.0),
        ((0, 0), 1.0),
        (slice(1, 2), candelabra.ones(4)),
        ([0, 1], 2.0),
        (x > 1, 0.0),
        (Ellipsis, 3.0),
    ]:
        before = x._version
        x[key] = value
        assert x._version == before + 1, key


def test_values_are_converted_and_stripped_of_leading_ones() -> None:
    x = candelabra.zeros(2, 3, dtype=candelabra.int64)
    x[0] = candelabra.tensor([[[1.7, 2.2, -3.9]]])
    assert x.tolist() == [[1, 2, -3], [0, 0, 0]]
    x[1] = [4, 5, 6]
    assert x[1].tolist() == [4, 5, 6]
    x[:, 0] = np.array([8, 9])
    assert x[:, 0].tolist() == [8, 9]
    x[0, 0] = candelabra.tensor([[3]])
    assert x[0, 0].item() == 3
    x[0, 1] = True
    assert x[0, 1].item() == 1


ERRORS = {
    "range": (lambda x: x[5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    "range below": (lambda x: x[0, -5], IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    "huge": (lambda x: x[2**70], IndexError, "cannot fit"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    "too many masks": (lambda x: x[x > 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    "scalar": (lambda x: x[0, 0][0], IndexError, r"invalid index of a 0-dim tensor. Use `tensor.item\(\)`"),
    "step": (lambda x: x[::-1], ValueError, "step must be greater than zero"),
    "step 0": (lambda x: x[::0], ValueError, "step"),
    "float": (lambda x: x[1.5], IndexError, "only integers, slices"),
    "str": (lambda x: x["a"], IndexError, r"got str"),
    "float list": (lambda x: x[[1.5]], IndexError, "must be long, int, byte or bool tensors"),
    "float tensor": (lambda x: x[candelabra.ones(2)], IndexError, "must be long, int, byte or bool tensors"),
    "ellipses": (lambda x: x[..., ...], IndexError, "single ellipsis"),
    "mask": (
        lambda x: x[candelabra.ones(2, dtype=candelabra.bool)],
        IndexError,
        r"The shape of the mask \[2\] at index 0",
    ),
    "list range": (lambda x: x[[0, 7]], IndexError, "out of bounds"),
    "shapes": (lambda x: x[[0, 1], [0, 1, 2]], IndexError, "could not be broadcast together"),
    "object": (lambda x: x[object()], IndexError, "only integers, slices"),
    "ragged": (lambda x: x[[[0, 1], [0]],], ValueError, "expected sequence of length 2"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call(candelabra.arange(12).reshape(3, 4))


def test_write_errors() -> None:
    x = candelabra.zeros(3, 4)
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(4\) must match the existing size \(3\)"):
        x[0] = candelabra.ones(3)
    with pytest.raises(RuntimeError, match="must be greater or equal to the number of dimensions"):
        x[0] = candelabra.ones(2, 4)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x[[0, 1]] = candelabra.ones(3, 4)
    with pytest.raises(RuntimeError, match="value cannot be converted to type"):
        x[0] = 1j
    with pytest.raises(TypeError, match="can't assign a str to a candelabra.FloatTensor"):
        x[0] = "a"
    with pytest.raises(TypeError, match="can't assign a NoneType"):
        x[0] = None
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]
    with pytest.raises(IndexError):
        x[:, 4] = 1
    with pytest.raises(RuntimeError, match="single memory location"):
        candelabra.zeros(1).expand(3)[:] = 1
    assert x.tolist() == candelabra.zeros(3, 4).tolist()


def test_iteration_length_and_membership() -> None:
    x = candelabra.arange(6).reshape(2, 3)
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    assert len(x) == 2
    assert 5 in x
    assert 6 not in x
    assert candelabra.tensor(4) in x
    first, _ = x
    first[0] = 9
    assert x[0, 0].item() == 9
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(candelabra.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(candelabra.tensor(1))
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x  # noqa: B015


def test_tensors_as_python_indices_and_numbers() -> None:
    assert list(range(9))[candelabra.tensor(3)] == 3
    assert "abc"[candelabra.tensor([1])] == "b"
    for bad in (candelabra.tensor(1.0), candelabra.tensor([1, 2])):
        with pytest.raises(TypeError, match="only integer tensors of a single element"):
            range(3)[bad]
    assert int(candelabra.tensor(2.7)) == 2
    assert float(candelabra.tensor([[3]])) == 3.0
    assert complex(candelabra.tensor(1 + 2j)) == 1 + 2j
    assert bool(candelabra.tensor(0.0)) is False
    assert bool(candelabra.tensor(float("nan"))) is True
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(candelabra.ones(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(candelabra.ones(0))
    with pytest.raises(ValueError, match="only one element tensors"):
        float(candelabra.ones(2))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        int(candelabra.tensor(float("nan")))
    with pytest.raises(RuntimeError, match="cannot be converted to type double"):
        float(candelabra.tensor(1j))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        candelabra.ones(2).item()
