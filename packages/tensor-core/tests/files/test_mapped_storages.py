"""Storages on the memory of files: found again, kept by their owner, put in the place of private
memory.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import weakref

import pytest

import candelabra as c
from candelabra import _C


class Owner:
    """Closes the file when the storage goes."""

    def __init__(self, nbytes: int) -> None:
        self.descriptor = os.memfd_create("test")
        os.ftruncate(self.descriptor, nbytes)

    def __del__(self) -> None:
        os.close(self.descriptor)


def mapped(nbytes: int):
    owner = Owner(nbytes)
    return _C.map_storage(owner.descriptor, nbytes, owner, "cpu")


def test_a_file_is_one_storage():
    owner = Owner(16)
    first = _C.map_storage(owner.descriptor, 16, owner, "cpu")
    other = os.dup(owner.descriptor)
    second = _C.map_storage(other, 16, "another owner", "cpu")
    os.close(other)
    assert first is second and _C.storage_owner(second) is owner and owner in _C.mapped_owners()
    x = _C.tensor_on_storage(first, c.float32).fill_(3)
    assert os.pread(owner.descriptor, 4, 12) == b"\x00\x00\x40\x40" and x.tolist() == [3] * 4
    gone = weakref.ref(owner)
    del first, second, owner
    assert gone() is not None and x.is_shared()
    del x
    assert gone() is None


def test_memory_moves_under_tensors():
    x = c.arange(4.0)
    view, data, array = x[2:], x.data, x.numpy()
    _C.move_storage(data.untyped_storage(), mapped(16))
    x.mul_(10)
    assert view.tolist() == [20, 30] and data.tolist() == [0, 10, 20, 30] and array.tolist() == [0, 1, 2, 3]
    assert x.is_shared() and data.is_shared() and view.untyped_storage().is_shared()
    assert data._version == 0 and x._version == 1
    owner = weakref.ref(_C.storage_owner(x.untyped_storage()))
    del x, view
    assert owner() is not None and data.tolist() == [0, 10, 20, 30]
    del data, array
    gc.collect()
    assert owner() is None


def test_moving_twice_keeps_the_first():
    x = c.ones(2)
    _C.move_storage(x.untyped_storage(), mapped(8))
    owner = _C.storage_owner(x.untyped_storage())
    _C.move_storage(x.untyped_storage(), mapped(8))
    assert _C.storage_owner(x.untyped_storage()) is owner and x.tolist() == [1, 1]


def test_errors():
    owner = Owner(8)
    with pytest.raises(ValueError, match="fewer than 9"):
        _C.map_storage(owner.descriptor, 9, owner, "cpu")
    with pytest.raises(ValueError, match="must not be negative"):
        _C.map_storage(owner.descriptor, -1, owner, "cpu")
    with pytest.raises(OSError, match="Bad file descriptor"):
        _C.map_storage(10_000_000, 1, owner, "cpu")
    with pytest.raises(ValueError, match="do not go to"):
        _C.move_storage(c.ones(3).untyped_storage(), mapped(8))
    with pytest.raises(ValueError, match="not the mapping"):
        _C.move_storage(c.ones(2).untyped_storage(), c.ones(2).untyped_storage())
    for call in (
        _C.storage_owner,
        lambda x: _C.move_storage(x, mapped(8)),
        lambda x: _C.move_storage(c.ones(2).untyped_storage(), x),
    ):
        with pytest.raises(TypeError, match="expected a Storage, but got int"):
            call(3)
    assert _C.storage_owner(c.ones(2).untyped_storage()) is None


def test_who_shares():
    try:
        installed = importlib.util.find_spec("candelabra.multiprocessing") is not None
    except ModuleNotFoundError:
        installed = False
    x = c.ones(2)
    if installed:
        assert x.share_memory_() is x and x.is_shared()
    else:
        with pytest.raises(ModuleNotFoundError, match="pip install candelabra-multiprocessing"):
            x.share_memory_()
