"""Methods that old programs call, the order of dimensions in memory, storages' bytes, files as
memory.
"""

import copy
import pickle

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra

# ---- sizes


def test_resize_keeps_the_elements():
    x = candelabra.arange(6).view(2, 3)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x.resize(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.warns(UserWarning, match="non-inplace resize_as is deprecated"):
        assert x.t().resize_as(candelabra.ones(6)).tolist() == [0, 3, 1, 4, 2, 5]
    with (
        pytest.warns(UserWarning, match="non-inplace"),
        pytest.raises(RuntimeError, match=r"requested resize to 7 \(7 elements.*size of 2x3 \(6 elements"),
    ):
        x.resize(7)


def test_resize_in_place_in_a_memory_format():
    x = candelabra.arange(12).resize_(1, 3, 2, 2, memory_format=candelabra.channels_last)
    assert x.stride() == (12, 1, 6, 3) and x.is_contiguous(memory_format=candelabra.channels_last)
    template = candelabra.ones(1, 3, 2, 2).to(memory_format=candelabra.channels_last)
    assert candelabra.arange(12).resize_as_(template).stride() == (12, 4, 2, 1)
    assert candelabra.arange(12).resize_as_(template, memory_format=candelabra.preserve_format).stride() == (
        12,
        1,
        6,
        3,
    )
    with pytest.raises(RuntimeError, match="rank 4"):
        candelabra.arange(4).resize_(2, 2, memory_format=candelabra.channels_last)
    with pytest.raises(RuntimeError, match="preserve_format"):
        candelabra.arange(4).resize_(2, 2, memory_format=candelabra.preserve_format)
    with pytest.raises(RuntimeError, match="must not be negative"):
        candelabra.arange(4).resize_(-2)


# ---- the order of dimensions


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.permutations(range(4)))
def test_order_of_permuted_dimensions(order):
    x = candelabra.ones(2, 3, 4, 5).permute(order)
    assert [order[d] for d in x.dim_order()] == [0, 1, 2, 3]
    assert x.dim_order(ambiguity_check=True) == x.dim_order()


def test_ambiguous_orders():
    x = candelabra.ones(2, 1, 4, 5)
    assert x.dim_order() == (0, 1, 2, 3)
    assert x.dim_order(ambiguity_check=[candelabra.contiguous_format]) == (0, 1, 2, 3)
    for ask in (True, [candelabra.channels_last, candelabra.contiguous_format]):
        if ask is True or x.is_contiguous(memory_format=candelabra.channels_last):
            with pytest.raises(RuntimeError, match="does not have unique dim order"):
                x.dim_order(ambiguity_check=ask)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        x.dim_order(ambiguity_check="ABC")
    assert candelabra.ones(2, 3).expand(4, 2, 3).dim_order() == (0, 1, 2)
    assert candelabra.ones(()).dim_order() == ()


# ---- the rest


def test_memory():
    x = candelabra.arange(4)
    assert x[1:].const_data_ptr() == x.data_ptr() + 8
    assert x.storage_type() is candelabra.LongStorage
    assert x.is_distributed() is False and candelabra.is_distributed(x) is False
    with pytest.raises(RuntimeError, match="expected a stream of device cpu, but got NoneType"):
        x.record_stream(None)
    with pytest.raises(NotImplementedError, match="used by no stream"):
        x.record_stream(candelabra.cpu.Stream())


def test_slice_inverse():
    x = candelabra.arange(6).view(2, 3)
    whole = x[:, 1:].slice_inverse(x, 1, 1)
    assert whole.tolist() == x.tolist() and whole.data_ptr() == x.data_ptr()


def test_map2():
    a = numpy.arange(6.0).reshape(2, 3)
    x = candelabra.from_numpy(a.copy())
    assert x.map2_(x * 2, candelabra.ones(3, dtype=candelabra.float64), lambda p, q, r: p * q + r) is x
    numpy.testing.assert_array_equal(x.numpy(), a * (2 * a) + 1)


def test_module_load():
    x, y = candelabra.zeros(2), candelabra.ones(2)
    assert x.module_load(y).tolist() == [1, 1] and x.tolist() == [1, 1]
    assert x.module_load(y, assign=True).data_ptr() == y.data_ptr()


def test_removed_things():
    x = candelabra.ones(1)
    assert x.name is None
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False
    with pytest.raises(RuntimeError, match="removed. Use candelabra.distributions"):
        x.reinforce(1)


def test_shrinking_methods():
    pytest.importorskip("candelabra.nn", reason="needs candelabra-nn")
    x = candelabra.tensor([-2.0, -0.2, 0.2, 2.0])
    assert x.hardshrink().tolist() == [-2, 0, 0, 2] and x.hardshrink(lambd=2).tolist() == [0, 0, 0, 0]
    assert candelabra.allclose(x.prelu(candelabra.tensor(0.5)), candelabra.tensor([-1.0, -0.1, 0.2, 2.0]))


# ---- storages


def test_bytes_of_a_storage():
    x = candelabra.tensor([1, 2, 3], dtype=candelabra.uint8)
    storage = x.untyped_storage()
    assert storage.tolist() == [1, 2, 3] == list(storage) and storage[1] == 2
    assert storage[1:].tolist() == [2, 3] and storage[1:].data_ptr() == storage.data_ptr() + 1
    storage[0] = 7
    assert x.tolist() == [7, 2, 3]
    copied = storage.clone()
    assert copied.fill_(5) is copied and x.tolist() == [7, 2, 3]
    assert storage.copy_(copied) is storage and x.tolist() == [5, 5, 5]
    assert storage.untyped() is storage and storage.cpu() is storage
    assert (storage.element_size(), storage.get_device(), storage.is_shared(), storage.is_pinned()) == (
        1,
        -1,
        False,
        False,
    )
    assert (storage.is_cuda, storage.is_sparse, storage.is_sparse_csr, storage.is_hpu) == (False, False, False, False)
    with pytest.raises(RuntimeError, match="size does not match, self was 3 bytes but src was 1 bytes"):
        storage.copy_(storage[:1])
    with pytest.raises(IndexError):
        storage[3]


def test_storages_are_copied_and_pickled():
    storage = candelabra.tensor([1, 2], dtype=candelabra.uint8).untyped_storage()
    assert pickle.loads(pickle.dumps(storage)).tolist() == [1, 2]
    assert copy.copy(storage.clone()).tolist() == [1, 2]


# ---- files


def test_a_shared_file_is_written(tmp_path):
    path = tmp_path / "numbers"
    x = candelabra.from_file(str(path), shared=True, size=4, dtype=candelabra.int32)
    assert x.tolist() == [0, 0, 0, 0]
    x.copy_(candelabra.arange(4, dtype=candelabra.int32))
    assert numpy.fromfile(path, dtype=numpy.int32).tolist() == [0, 1, 2, 3]
    again = candelabra.from_file(path, True, 6, dtype=candelabra.int32)
    assert again.tolist() == [0, 1, 2, 3, 0, 0] and path.stat().st_size == 24
    x[0] = 9
    assert again[0] == 9


def test_a_private_file_is_not_written(tmp_path):
    path = tmp_path / "numbers"
    numpy.array([1.0, 2.0], dtype=numpy.float32).tofile(path)
    x = candelabra.from_file(str(path), size=2)
    x[0] = 9
    assert x.tolist() == [9, 2] and numpy.fromfile(path, dtype=numpy.float32).tolist() == [1, 2]
    assert candelabra.from_file(str(path), False, 1, requires_grad=True).requires_grad
    assert candelabra.from_file(str(path)).shape == (0,)


def test_files_that_cannot_be_mapped(tmp_path):
    with pytest.raises(RuntimeError, match="unable to open file .* in read-only mode: No such file"):
        candelabra.from_file(str(tmp_path / "none"), size=1)
    with pytest.raises(RuntimeError, match="in read-write mode"):
        candelabra.from_file(str(tmp_path / "none" / "none"), shared=True, size=1)
    (tmp_path / "short").write_bytes(b"abcd")
    with pytest.raises(RuntimeError, match="size <4> is smaller than the required mapping size <8>"):
        candelabra.from_file(str(tmp_path / "short"), size=2)
    with pytest.raises(RuntimeError, match="must not be negative"):
        candelabra.from_file(str(tmp_path / "short"), size=-1)
    assert (tmp_path / "short").read_bytes() == b"abcd"


# ---- names


def test_names_of_types():
    assert candelabra.typename(candelabra.ones(1)) == "candelabra.FloatTensor"
    assert candelabra.typename(candelabra.FloatTensor) == "candelabra.FloatTensor"
    assert candelabra.typename(int) == "int" and candelabra.typename("a") == "str"
    assert candelabra.typename(numpy.linalg.norm) == "numpy.linalg.norm"
    assert candelabra.get_file_path("a", "b").endswith("/a/b")
