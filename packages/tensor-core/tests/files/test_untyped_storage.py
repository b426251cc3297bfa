"""Untyped storages: made from sizes, bytes and buffers, sliced, resized, subclassed."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest

import candelabra
from candelabra import UntypedStorage


class Named(UntypedStorage):
    def __init__(self, *arguments, name="", **keywords):
        self.name = name


def test_constructors():
    assert len(UntypedStorage()) == 0 and not UntypedStorage()
    assert (len(UntypedStorage(4)), UntypedStorage(3, device="cpu").device.type) == (4, "cpu")
    assert UntypedStorage([1, 255, 256, -1]).tolist() == [1, 255, 0, 255]
    assert UntypedStorage(b"ab").tolist() == list(UntypedStorage(UntypedStorage(b"ab"))) == [97, 98]
    for arguments, kind, match in [
        ((-1,), RuntimeError, "a storage of -1 bytes"), ((1, 2), TypeError, "invalid combination of arguments"),
        ((2.5,), RuntimeError, "Expected a sequence type, but got float"), (("a",), RuntimeError, "of type str instead of int"),
        (([1.5],), RuntimeError, "of type float instead of int"), ((True,), RuntimeError, "Expected a sequence type, but got bool"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=match):
            UntypedStorage(*arguments)
    with pytest.raises(TypeError, match="not safe"):
        object.__new__(UntypedStorage)


def test_subclasses():
    class Plain(UntypedStorage):
        pass

    storage = Plain([1, 2])
    storage.note = 3
    assert type(storage) is Plain and len(storage) == 2 and candelabra.is_storage(storage)
    tensor = candelabra.empty(0, dtype=candelabra.uint8).set_(storage)
    assert tensor.untyped_storage() is storage
    del storage
    gc.collect()
    assert type(tensor.untyped_storage()) is Plain and tensor.untyped_storage().note == 3
    assert tensor.tolist() == [1, 2]
    assert type(Plain([1, 2]).clone()) is type(copy.deepcopy(Plain([1]))) is Plain
    assert Plain.from_buffer(b"a", dtype=candelabra.uint8).tolist() == [97]


def test_attributes_live_as_long_as_the_memory():
    class Tracked:
        pass

    tensor = candelabra.ones(2)
    tensor.untyped_storage().tracked = Tracked()
    gc.collect()
    view = tensor[1:]
    seen = weakref.ref(tensor.untyped_storage().tracked)
    held = weakref.ref(tensor.untyped_storage())
    del tensor
    gc.collect()
    assert held() is view.untyped_storage() and held().tracked is seen()
    del view
    assert held() is None and seen() is None
    first, second = UntypedStorage(1), UntypedStorage(1)
    first.other, second.other = second, first
    seen = weakref.ref(first)
    del first, second
    gc.collect()
    assert seen() is None


def test_a_subclass_with_other_arguments_is_pickled():
    made = pickle.loads(pickle.dumps(Named([1, 2])))
    assert type(made) is Named and made.tolist() == [1, 2]


def test_slices_share_the_memory():
    x = candelabra.tensor([1, 2, 3, 4], dtype=candelabra.uint8)
    part = x.untyped_storage()[1:3]
    part[0] = 9
    assert x.tolist() == [1, 9, 3, 4] and part[-1:].tolist() == [3]
    del x
    gc.collect()
    assert part.tolist() == [9, 3]
    assert part[5:].tolist() == part[1:0].tolist() == []
    with pytest.raises(RuntimeError, match="step of 2"):
        part[::2]
    with pytest.raises(IndexError, match="index 2 out of range for storage of size 2"):
        part[2]
    with pytest.raises(TypeError, match="can't index a candelabra.UntypedStorage with str"):
        part["a"]
    with pytest.raises(RuntimeError, match="int types"):
        part[0] = 1.5
    with pytest.raises(RuntimeError, match="fill_ expects int, but got float"):
        part.fill_(1.5)


def test_resizing():
    x = candelabra.tensor([1, 2, 3], dtype=candelabra.uint8)
    view, storage = x[1:], x.untyped_storage()
    assert storage.resizable() and storage.resize_(5) is storage
    assert storage[:3].tolist() == [1, 2, 3] and len(storage) == 5
    del storage
    storage = x.untyped_storage()
    storage.fill_(7)
    assert view.tolist() == [7, 7]
    y = x.data
    storage.resize_(0)
    assert (storage.nbytes(), y.untyped_storage().nbytes()) == (0, 0)
    # The tensors can still be read: their memory is kept.
    assert x.tolist() == view.tolist() + [7] == y.tolist()
    storage.resize_(4)
    assert storage.tolist() == [7, 7, 7, 7]
    storage.resize_(100)
    assert storage[:4].tolist() == [7] * 4 and y.tolist() == [7] * 3
    with pytest.raises(RuntimeError, match="a storage of -1 bytes"):
        storage.resize_(-1)


def test_memory_that_others_have_is_not_resized():
    numpy = pytest.importorskip("numpy")
    x = candelabra.ones(2)
    array = x.numpy()
    for storage in (x.untyped_storage(), candelabra.from_numpy(numpy.ones(2)).untyped_storage()):
        assert not storage.resizable()
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            storage.resize_(1)
    assert array.tolist() == [1, 1]


def test_a_smaller_storage_is_not_shared():
    pytest.importorskip("candelabra.multiprocessing", reason="needs candelabra-multiprocessing")
    storage = candelabra.ones(4).untyped_storage().resize_(4)
    with pytest.raises(RuntimeError, match="made smaller"):
        storage.share_memory_()
    assert UntypedStorage(4).resize_(8).share_memory_().is_shared()


def test_buffers():
    assert UntypedStorage.from_buffer(b"abcde", "native", 1, 2, dtype=candelabra.int16).tolist() == [99, 100]
    assert UntypedStorage.from_buffer(bytearray(b"abcd"), "big", dtype=candelabra.int32).tolist() == [
        100, 99, 98, 97,
    ]  # fmt: skip
    assert UntypedStorage.from_buffer(b"ab", dtype=candelabra.uint8).tolist() == [97, 98]
    for arguments, dtype, kind, match in [
        ((b"",), None, RuntimeError, "'dtype' cannot be None"), ((b"ab",), "int16", RuntimeError, "missing required argument 'byte_order'"),
        ((b"ab", "x"), "int16", ValueError, "invalid byte_order 'x'"), ((b"abc", "big"), "int16", ValueError, "must be a multiple of"),
        ((b"ab", "big", 2), "int16", ValueError, "has only 1 elements"), ((b"ab", "big", 1, 3), "int16", ValueError, "offset must be"),
        ((3, "big"), "int16", TypeError, "bytes-like object"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=match):
            UntypedStorage.from_buffer(*arguments, dtype=dtype and getattr(candelabra, dtype))


def test_conversions_and_bytes():
    x = candelabra.tensor([1.0, 2.0])
    storage = x.untyped_storage()
    assert storage.float().tolist()[:4] == [0.0, 0.0, 128.0, 63.0] and storage.byte()._cdata != storage._cdata
    storage.byteswap(candelabra.float32)
    assert storage[:4].tolist() == [63, 128, 0, 0]
    assert storage.type() == "candelabra.storage.UntypedStorage" and storage.type(UntypedStorage) is storage
    assert len(storage.new()) == 0 and storage.__sizeof__() > 8
    assert repr(UntypedStorage([1])) == " 1\n[candelabra.storage.UntypedStorage(device=cpu) of size 1]"
    assert storage != storage.clone() and hash(storage) == hash(x.untyped_storage())
    assert storage._cdata == x.data.untyped_storage()._cdata


def test_tensors_of_storages():
    x = candelabra.tensor([1.0, 2.0])
    made = candelabra.asarray(x.untyped_storage(), dtype=candelabra.float32)
    assert made.tolist() == [1.0, 2.0] and made.data_ptr() == x.data_ptr()
    assert candelabra.asarray(x._typed_storage()).tolist() == [1.0, 2.0]
    assert candelabra.asarray(UntypedStorage(16)).dtype is candelabra.int64
    assert candelabra.asarray(x.untyped_storage(), dtype=candelabra.float32, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Expected a Storage of type candelabra.int32"):
        candelabra.asarray(x._typed_storage(), dtype=candelabra.int32)


def test_deep_copies_share_memory():
    storage = UntypedStorage([1, 2])
    first, second = copy.deepcopy([storage, candelabra.asarray(storage).untyped_storage()])
    assert first is second and first.tolist() == [1, 2]
