"""Storages with a dtype: PyTorch's deprecated ones."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest

import candelabra


@pytest.fixture(autouse=True)
def deprecation_is_known():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def test_a_tensors_memory_in_elements():
    x = candelabra.arange(6.0)[2:]
    storage = x.storage()
    assert (storage.size(), len(storage), storage.nbytes(), storage.element_size()) == (6, 6, 24, 4)
    assert storage.tolist() == list(storage) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert storage.data_ptr() == x.untyped_storage().data_ptr()
    assert storage.untyped() is x.untyped_storage()
    assert storage.dtype is candelabra.float32
    assert storage.device.type == "cpu"
    assert (storage[1], storage[-1]) == (1.0, 5.0)
    storage[2] = 9
    assert x[0].item() == 9.0
    storage[3:5] = 7
    assert x.tolist() == [9.0, 7.0, 7.0, 5.0]
    assert candelabra.is_storage(storage)
    assert storage != x.storage() and storage._cdata == x.storage()._cdata != x.clone().storage()._cdata
    assert repr(x[:0].clone().storage()).startswith(
        "[candelabra.storage.TypedStorage(dtype=candelabra.float32, device=cpu) of size"
    )
    with pytest.raises(RuntimeError, match="slices are only supported"):
        storage[1:2]
    with pytest.raises(RuntimeError, match="can't index a .* with <class 'str'>"):
        storage["a"]
    with pytest.raises(IndexError, match="index 6 out of range for storage of size 6"):
        storage[6]


def test_it_is_deprecated():
    for use in (lambda: candelabra.ones(1).storage(), lambda: candelabra.FloatStorage(1)):
        candelabra.storage.removal_warning.given = False
        with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
            use()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            use()  # it warns once


def test_what_pytorch_calls_itself():
    storage = candelabra.FloatStorage([1, 2], _internal=True)
    assert storage._size() == 2 and storage._nbytes() == 8 and storage._pickle_storage_type() == "FloatStorage"
    written = io.BytesIO()
    storage._write_file(written, False, True, 4)
    assert written.getvalue() == bytes([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64])
    without = candelabra.TypedStorage([1, 2], device="meta", dtype=candelabra.float32)
    for call in (without._share_fd_cpu_, without._share_filename_cpu_, without.share_memory_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            call()
    for call in (lambda: without._write_file(written, False, True, 4), lambda: storage.copy_(without)):
        with pytest.raises(NotImplementedError, match="Cannot copy out"):
            call()


def test_the_old_classes():
    storage = candelabra.FloatStorage([1, 2])
    assert (storage.tolist(), storage.type()) == ([1.0, 2.0], "candelabra.FloatStorage")
    assert isinstance(storage, candelabra.FloatStorage)
    assert isinstance(storage, candelabra.TypedStorage)
    assert not isinstance(storage, candelabra.LongStorage)
    assert candelabra.LongStorage.dtype is candelabra.int64
    assert candelabra.LongStorage(3).nbytes() == 24
    assert candelabra.ones(1).half().storage_type() is candelabra.HalfStorage
    assert candelabra.TypedStorage([1, 2], dtype=candelabra.int16).nbytes() == 4
    assert candelabra.TypedStorage().size() == 0
    memory = candelabra.ones(2).untyped_storage()
    assert candelabra.FloatStorage(wrap_storage=memory).untyped() is memory
    for arguments, keywords, kind, match in [
        (("a",), {}, TypeError, "invalid data type 'str'"), ((2.5,), {}, TypeError, "Argument type not recognized: <class 'float'>"),
        ((1, 2), {}, RuntimeError, "Too many positional"), ((), {"dtype": candelabra.int8}, RuntimeError, "cannot be specified"),
        ((-1,), {}, RuntimeError, "cannot be made"), ((1,), {"wrap_storage": memory}, RuntimeError, "No positional arguments"),
        ((), {"wrap_storage": 3}, TypeError, "must be UntypedStorage"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=match):
            candelabra.FloatStorage(*arguments, **keywords)


def test_converting_and_copying():
    storage = candelabra.tensor([1.5, 2.5]).storage()
    assert (storage.long().tolist(), storage.long().dtype) == ([1, 2], candelabra.int64)
    assert storage.float().tolist() == [1.5, 2.5] and storage.float()._cdata != storage._cdata
    assert storage.type(candelabra.HalfStorage).dtype is candelabra.float16
    assert storage.clone().data_ptr() != storage.data_ptr()
    assert storage.cpu() is storage
    assert storage.copy_(candelabra.tensor([3.0, 4.0]).storage()).tolist() == [3.0, 4.0]
    assert storage.fill_(5).tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError, match="size does not match, self was 8 bytes but src was 12 bytes"):
        storage.copy_(candelabra.ones(3).storage())
    for made in (copy.deepcopy(storage), pickle.loads(pickle.dumps(storage))):
        assert (made.tolist(), made.dtype) == ([5.0, 5.0], candelabra.float32)


def test_typed_storages_of_buffers_files_and_other_sizes(tmp_path):
    assert candelabra.IntStorage.from_buffer(b"\1\0\0\0\0\0\0\2", "little").tolist() == [1, 2 << 24]
    assert candelabra.TypedStorage.from_buffer(b"\0\1", "big", dtype=candelabra.int16).tolist() == [1]
    with pytest.raises(RuntimeError, match="'dtype' can only be specified in UntypedStorage.from_buffer"):
        candelabra.IntStorage.from_buffer(b"abcd", "little", dtype=candelabra.int8)
    mapped = candelabra.IntStorage.from_file(str(tmp_path / "numbers"), True, 2).fill_(3)
    assert (tmp_path / "numbers").read_bytes() == b"\3\0\0\0" * 2 and mapped.filename == str(tmp_path / "numbers")
    with pytest.raises(RuntimeError, match="can only be called on derived classes"):
        candelabra.TypedStorage.from_file("numbers", False, 2)
    storage = candelabra.FloatStorage([1, 2])
    assert storage.resizable()
    storage.resize_(3)
    assert storage.size() == 3 and storage.tolist()[:2] == [1.0, 2.0]
    assert issubclass(candelabra.FloatStorage, candelabra.TypedStorage)


def test_shared_storages():
    pytest.importorskip("candelabra.multiprocessing", reason="needs candelabra-multiprocessing")
    assert candelabra.IntStorage._new_shared(3).is_shared()
    assert candelabra.UntypedStorage._new_shared(3).size() == 3


def test_tensors_on_storages():
    storage = candelabra.FloatStorage([1, 2, 3])
    x = candelabra.FloatTensor(storage)
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert x.data_ptr() == storage.data_ptr()
    with pytest.raises(RuntimeError, match="Expected a Storage of type Long"):
        candelabra.LongTensor(storage)
    y = candelabra.empty(0).set_(storage, 1, (2,), (1,))
    assert y.tolist() == [2.0, 3.0]
    storage[1] = 8
    assert (x[1].item(), y[0].item()) == (8.0, 8.0)
    assert candelabra.empty(0).set_(storage.untyped()).tolist() == [1.0, 8.0, 3.0]


def test_the_dtype_of_gradients():
    x = candelabra.ones(2, dtype=candelabra.float64)
    assert x.grad_dtype is candelabra.float64
    x.grad_dtype = candelabra.float64
    with pytest.raises(NotImplementedError, match="a gradient has the dtype of its tensor"):
        x.grad_dtype = candelabra.float32


def test_copies_share_as_the_originals_do():
    x = candelabra.ones(3)
    tensor, view, typed, memory = copy.deepcopy([x, x[1:], x.storage(), x.untyped_storage()])
    tensor.add_(1)
    assert typed.tolist() == [2.0] * 3
    assert view.tolist() == [2.0] * 2
    assert memory.data_ptr() == tensor.data_ptr() != x.data_ptr()
