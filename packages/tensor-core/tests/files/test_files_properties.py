"""Whatever is saved comes back: nested containers, every dtype, strides, views on one storage, in
every format that can hold it.
"""

from __future__ import annotations

import collections
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra import safetensors
from candelabra.serialization import load_npy, load_npz, save_npy, save_npz

DTYPES = [
    c.bool, c.uint8, c.int8, c.int16, c.uint16, c.int32, c.uint32, c.int64, c.uint64, c.float16, c.bfloat16, c.float32, c.float64,
    c.complex64, c.complex128,
]  # fmt: skip
WITH_NUMPY = [dtype for dtype in DTYPES if dtype is not c.bfloat16]

shapes = st.lists(st.integers(0, 4), max_size=4)


@st.composite
def storages(draw):
    """Bytes as a tensor of some dtype; bools are 0 and 1."""
    dtype = draw(st.sampled_from(DTYPES))
    count = draw(st.integers(0, 40))
    data = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    flat = c.frombuffer(bytearray(data), dtype=c.uint8) if data else c.zeros(0, dtype=c.uint8)
    return flat.remainder(2).bool() if dtype is c.bool else flat.clone().view(dtype)


@st.composite
def views(draw, base):
    """A view of a flat tensor with some strides, expanded and overlapping ones among them."""
    size, stride = [], []
    left = base.numel() - 1
    offset = draw(st.integers(0, max(left, 0)))
    left -= offset
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.integers(0, 5))
        most = 3 if step == 0 else left // step
        number = draw(st.integers(0, max(min(most, 4), 0))) + 1
        if left < 0:
            number = 0
        size.append(number)
        stride.append(step)
        left -= max(number - 1, 0) * step
    if base.numel() == 0:
        size, stride, offset = [0, *size], [1, *stride], 0
    return base.as_strided(size, stride, offset)


plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(1 << 20_000), 1 << 20_000), st.floats(allow_nan=False), st.text(), st.binary(),
    st.complex_numbers(allow_nan=False), st.sampled_from(DTYPES), shapes.map(c.Size), st.just(c.device("cpu")),
)  # fmt: skip
keys = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(1 << 60), 1 << 60), st.floats(allow_nan=False), st.text(), st.binary()
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


@st.composite
def values(draw):
    """Containers of plain data and of tensors, some of which share their storages."""
    bases = [draw(storages()) for _ in range(draw(st.integers(1, 3)))]
    leaves = st.one_of(plain, st.sampled_from(bases).flatmap(views), st.sampled_from(bases).flatmap(views))
    return draw(
        st.recursive(
            leaves,
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.lists(inner, max_size=3).map(tuple),
                st.dictionaries(keys, inner, max_size=3),
                st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
            ),
            max_leaves=8,
        )
    )


def bits(tensor):
    """The elements as bytes, so that NaN is itself."""
    dense = tensor.detach().contiguous()
    return dense.reshape(-1).view(c.uint8).tolist() if dense.numel() else []


def tensors_in(value, found):
    if isinstance(value, c.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_in(item, found)
    elif isinstance(value, (list, tuple)) and not isinstance(value, c.Size):
        for item in value:
            tensors_in(item, found)
    return found


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, c.Tensor):
        assert a.dtype is b.dtype and a.shape == b.shape and a.stride() == b.stride() and bits(a) == bits(b)
        assert a.storage_offset() == b.storage_offset() or 0 in a.shape
        assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes()
    elif isinstance(a, dict):
        # In the same order; equal keys may be of several types (1, True).
        assert [(type(key), key) for key in a] == [(type(key), key) for key in b]
        for one, other in zip(a.values(), b.values()):
            same(one, other)
    elif isinstance(a, (list, tuple)) and not isinstance(a, c.Size):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
    else:
        assert a == b or a is b


def shared(tensors):
    """Which of the tensors are on one storage."""
    addresses = [tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.untyped_storage().nbytes()]
    return [addresses.index(address) for address in addresses]


@pytest.mark.parametrize("options", [{}, {"format": "pytorch"}], ids=["candelabra", "pytorch"])
def test_archives(options, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "x"

    @given(values())
    @settings(max_examples=60, deadline=None)
    def holds(value):
        file = io.BytesIO()
        c.save(value, file, **options)
        found = c.load(file)
        same(value, found)
        assert shared(tensors_in(value, [])) == shared(tensors_in(found, []))
        path.write_bytes(file.getvalue())
        mapped = c.load(path, mmap=True)
        same(value, mapped)
        assert shared(tensors_in(value, [])) == shared(tensors_in(mapped, []))

    holds()


@given(st.lists(storages().flatmap(views), max_size=4), st.dictionaries(keys, plain, max_size=3))
@settings(max_examples=60, deadline=None)
def test_the_old_format(tensors, data):
    file = io.BytesIO()
    c.save([tensors, data], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    found = c.load(file)
    same([tensors, data], found)
    assert file.tell() == len(file.getvalue())


@given(
    st.dictionaries(st.text(min_size=1), storages(), max_size=4),
    st.one_of(st.none(), st.dictionaries(st.text(), st.text(), max_size=3)),
)
@settings(max_examples=60, deadline=None)
def test_safetensors(tensors, metadata):
    tensors = {
        name: tensor for name, tensor in tensors.items() if tensor.dtype is not c.complex128 and name != "__metadata__"
    }
    if metadata is not None:
        metadata.pop("__metadata__", None)
    tensors = {name: tensor.reshape(1, -1) for name, tensor in tensors.items()}
    data = safetensors.save(tensors, metadata)
    assert len(data) % 8 == sum(tensor.numel() * tensor.dtype.itemsize for tensor in tensors.values()) % 8
    found = safetensors.load(data)
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert (
            found[name].dtype is tensor.dtype
            and found[name].shape == tensor.shape
            and bits(found[name]) == bits(tensor)
        )


@given(storages().filter(lambda x: x.dtype is not c.bfloat16).flatmap(views))
@settings(max_examples=60, deadline=None)
def test_numpy_reads_what_is_written(x):
    file = io.BytesIO()
    save_npy(file, x)
    file.seek(0)
    array = np.load(file, allow_pickle=False)
    assert array.shape == tuple(x.shape) and array.tobytes() == x.contiguous().numpy().tobytes()
    file.seek(0)
    found = load_npy(file)
    assert found.dtype is x.dtype and found.shape == x.shape and bits(found) == bits(x)
    archive = io.BytesIO()
    save_npz(archive, x, name=x)
    archive.seek(0)
    arrays = np.load(archive, allow_pickle=False)
    assert sorted(arrays) == ["arr_0", "name"] and arrays["name"].tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", WITH_NUMPY, ids=str)
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("compressed", [False, True])
def test_what_numpy_writes_is_read(dtype, order, compressed):
    numbers = np.arange(12).reshape(2, 3, 2)
    array = numbers.astype(np.dtype(c.zeros(1, dtype=dtype).numpy().dtype).newbyteorder(order))
    for version in (array, np.asfortranarray(array), array[0, 0, 0], array[:0], array.T):
        file = io.BytesIO()
        np.save(file, version)
        file.seek(0)
        found = load_npy(file)
        assert found.dtype is dtype and np.array_equal(found.numpy(), version) and found.shape == version.shape
        archive = io.BytesIO()
        (np.savez_compressed if compressed else np.savez)(archive, version, x=version)
        archive.seek(0)
        assert np.array_equal(load_npz(archive)["x"].numpy(), version)
        assert np.array_equal(c.load(archive)["arr_0"].numpy(), version)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.array([object()]), "objects of Python"), (np.array(["ab"]), "dtype '<U2'"), (np.zeros(2, [("a", "f4")]), "records"),
        (np.array(1, "M8[s]"), "no tensor"), (np.array(b"xy"), "S2"), (np.zeros(1, np.longdouble), "no tensor"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_tensors(array, reason):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    for load in (load_npy, c.load):
        file.seek(0)
        with pytest.raises(c.serialization.FileError, match=reason):
            load(file)


def test_what_numpy_has_not():
    with pytest.raises(TypeError, match="NumPy has no dtype bfloat16"):
        save_npy(io.BytesIO(), c.ones(2, dtype=c.bfloat16))
    with pytest.raises(TypeError, match="expected a Tensor, but got list"):
        save_npy(io.BytesIO(), [1])
    with pytest.raises(ValueError, match="'arr_0' is that of a tensor without one"):
        save_npz(io.BytesIO(), c.ones(1), arr_0=c.ones(1))


@pytest.mark.parametrize("order", ["little", "big"])
def test_pytorch_of_another_byte_order(order):
    import zipfile

    file = io.BytesIO()
    values = {
        dtype: c.tensor([1, 2, 300]).to(dtype)
        for dtype in (c.int16, c.int64, c.float32, c.bfloat16, c.complex128, c.uint8)
    }
    c.save(list(values.values()), file, format="pytorch")
    made = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(made, "w") as turned:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith("byteorder"):
                data = order.encode()
            elif "/data/" in name and order == "big":
                dtype = list(values)[int(name.rpartition("/")[2])]
                size = 8 if dtype is c.complex128 else dtype.itemsize
                data = np.frombuffer(data, f"V{size}").view(np.uint8).reshape(-1, size)[:, ::-1].tobytes()
            turned.writestr(name, data)
    found = c.load(made)
    assert [x.tolist() for x in found] == [x.tolist() for x in values.values()]


def test_nested_too_deeply():
    value: list = []
    for _ in range(100_000):
        value = [value]
    for options in ({}, {"format": "pytorch"}):
        with pytest.raises(ValueError, match="nested too deeply"):
            c.save(value, io.BytesIO(), **options)


def test_storages_and_state_dicts():
    x = c.arange(4.0)
    state = collections.OrderedDict(x=x)
    state._metadata = collections.OrderedDict([("", {"version": 2})])  # type: ignore[attr-defined]
    file = io.BytesIO()
    c.save([x, x.untyped_storage(), state], file)
    y, storage, again = c.load(file)
    assert storage is y.untyped_storage() and again["x"].untyped_storage() is storage
    assert type(again) is collections.OrderedDict and again._metadata == state._metadata  # type: ignore[attr-defined]
