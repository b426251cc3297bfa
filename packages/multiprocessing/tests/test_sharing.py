"""Test sharing memory: in place, under views, and with each strategy."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import resource
import threading

import numpy as np
import processes
import pytest

import candelabra as c
import candelabra.multiprocessing as mp
from candelabra.multiprocessing import memory, named_files

DTYPES = [c.bool, c.uint8, c.int16, c.int64, c.float16, c.bfloat16, c.float32, c.float64, c.complex64, c.complex128]


@pytest.mark.parametrize("dtype", [c.float8_e4m3fn, c.float8_e5m2, c.float8_e8m0fnu, c.complex32], ids=repr)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_small_dtypes(dtype):
    numbers = c.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 0.25]])
    shared = numbers.to(dtype).share_memory_()
    assert shared.is_shared() and shared.float().tolist() == numbers.tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_stay(strategy, dtype):
    x = c.tensor([[0, 1, 2], [3, 1, 0]]).to(dtype)
    before = x.tolist()
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared() and x.untyped_storage().is_shared()
    assert x.tolist() == before and x.dtype is dtype


def test_all_views_move(strategy):
    x = c.arange(24.0).reshape(4, 6)
    row, column, wide, ints = x[1], x.T[2], x[:1].expand(3, 6), x.view(c.int32)
    row.share_memory_()
    assert all(t.is_shared() for t in (x, row, column, wide, ints))
    x.mul_(2)
    base = np.arange(24, dtype=np.float32).reshape(4, 6) * 2
    assert row.tolist() == base[1].tolist() and column.tolist() == base.T[2].tolist()
    assert wide[2].tolist() == base[0].tolist() and ints.tolist() == base.view(np.int32).tolist()
    assert x._version == row._version


def test_data_moves_along():
    x = c.ones(3, requires_grad=True)
    data, deeper = x.data, x.data.data
    deeper.share_memory_()
    data.mul_(5)
    assert x.is_shared() and x.tolist() == deeper.tolist() == [5, 5, 5]
    del x, data
    assert deeper.tolist() == [5, 5, 5]


def test_arrays_keep_the_private_memory():
    x = c.arange(4.0)
    array, capsule = x.numpy(), x.__dlpack__()
    x.share_memory_()
    x.fill_(9)
    assert array.tolist() == [0, 1, 2, 3]
    del x
    gc.collect()
    assert array.tolist() == c.from_dlpack(capsule).tolist() == [0, 1, 2, 3]
    y = c.arange(4.0).share_memory_()
    after = y.numpy()
    y.fill_(9)
    assert after.tolist() == [9] * 4
    del y
    assert after.tolist() == [9] * 4


def test_memory_of_numpy():
    array = np.arange(3.0)
    x = c.from_numpy(array).share_memory_()
    x.fill_(1)
    assert array.tolist() == [0, 1, 2] and x.tolist() == [1, 1, 1]


def test_twice_is_once(strategy):
    x = c.ones(5).share_memory_()
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address and x.untyped_storage().share_memory_().data_ptr() == address


@pytest.mark.parametrize("shape", [(0,), (0, 3), ()])
def test_small_shapes(strategy, shape):
    x = c.zeros(shape).share_memory_()
    assert x.is_shared() and x.shape == shape and x.tolist() == np.zeros(shape).tolist()


def test_memory_goes_with_the_last_view(strategy):
    before = processes.what_there_is()
    x = c.ones(1000).share_memory_()
    view = x[3:]
    del x
    assert (len(processes.links()), len(processes.named_files())) == (
        before[0] + (strategy == "file_descriptor"),
        before[1] + (strategy == "file_system"),
    )
    del view
    assert processes.what_there_is() == before


def test_threads_share_one_tensor():
    x = c.arange(100_000.0)
    threads = [threading.Thread(target=x.share_memory_) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.is_shared() and x.sum().item() == c.arange(100_000.0).sum().item()


def test_storages_pickle_as_storages():
    storage = c.arange(3, dtype=c.uint8).untyped_storage()
    copied = pickle.loads(pickle.dumps(storage))
    assert type(copied) is type(storage) and copied.tolist() == [0, 1, 2]
    a, b = pickle.loads(pickle.dumps((c.ones(2), storage)))
    assert a.tolist() == [1, 1] and b.tolist() == [0, 1, 2]


# ---- errors


def test_strategies_are_checked():
    with pytest.raises(ValueError, match="file_system"):
        mp.set_sharing_strategy("telepathy")
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}


def test_too_much_memory(strategy, monkeypatch):
    before = processes.what_there_is()

    def full(descriptor, offset, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    x = c.ones(10)
    with pytest.raises(c.OutOfMemoryError, match="no shared memory left for 40 bytes"):
        x.share_memory_()
    assert not x.is_shared() and x.tolist() == [1] * 10
    assert processes.what_there_is() == before


def test_more_memory_than_there_is():
    with pytest.raises(c.OutOfMemoryError, match="no shared memory left"):
        memory.new_storage(1 << 60)


def test_no_descriptor_left():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = []
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, before[1]))
    try:
        with pytest.raises(RuntimeError, match=r"no file descriptor left .*set_sharing_strategy\('file_system'\)"):
            kept.extend(c.ones(1).share_memory_() for _ in range(2000))
        # Existing tensors stay valid, and named files need no descriptors.
        kept.pop()
        mp.set_sharing_strategy("file_system")
        kept += [c.ones(1).share_memory_() for _ in range(100)]
    finally:
        mp.set_sharing_strategy("file_descriptor")
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert all(x.item() == 1 for x in kept)


def test_somebody_elses_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(named_files, "ROOT", str(tmp_path))
    monkeypatch.setattr(named_files, "_directory", None)
    (tmp_path / f"candelabra-{os.getuid()}").mkdir(mode=0o755)
    mp.set_sharing_strategy("file_system")
    try:
        with pytest.raises(RuntimeError, match="this user alone can read"):
            c.ones(1).share_memory_()
    finally:
        mp.set_sharing_strategy("file_descriptor")


def test_mapping_is_checked():
    storage = memory.new_storage(8)
    file = memory.file_of(storage)
    with pytest.raises(ValueError, match="fewer than 16"):
        c._C.map_storage(file.descriptor, 16, None, "cpu")
    with pytest.raises(ValueError, match="must not be negative"):
        c._C.map_storage(file.descriptor, -1, None, "cpu")
    # A shorter mapping of a file is a separate storage on the same memory.
    part = c._C.map_storage(file.descriptor, 4, None, "cpu")
    part.fill_(3)
    assert part is not storage and storage.tolist() == [3] * 4 + [0] * 4
    user = c._C.tensor_on_storage(storage, c.uint8)
    with pytest.raises(ValueError, match="in use"):
        c._C.move_storage(c.ones(2).untyped_storage(), user.untyped_storage())
    with pytest.raises(ValueError, match="do not go to"):
        c._C.move_storage(c.ones(3).untyped_storage(), memory.new_storage(8))
    with pytest.raises(ValueError, match="not the mapping"):
        c._C.move_storage(c.ones(2).untyped_storage(), c.ones(2).untyped_storage())
    with pytest.raises(TypeError, match="expected a Storage"):
        c._C.storage_owner(3)
    with pytest.raises(OSError, match="Bad file descriptor"):
        c._C.map_storage(10_000_000, 4, None, "cpu")
