"""Lazy clones: storages that share memory until one of them is written to."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import _C

np = pytest.importorskip("numpy")

COUNT = 6
#: Whatever writes to memory, or gives out its address.
WRITES = {
    "in place": lambda x: x.add_(1),
    "in place, by a view": lambda x: x.view(2, 3).mul_(2),
    "in place, by an alias": lambda x: x.detach().add_(1),
    "setitem": lambda x: x.__setitem__(0, 9.0),
    "setitem of a tensor": lambda x: x.__setitem__(slice(0, 2), candelabra.ones(2)),
    "advanced setitem": lambda x: x.__setitem__(candelabra.tensor([0]), 9.0),
    "copy_": lambda x: x.copy_(candelabra.ones(COUNT)),
    "copy_ of a part": lambda x: x[1:].copy_(candelabra.ones(COUNT - 1)),
    "fill_": lambda x: x.fill_(3),
    "random_": lambda x: x.random_(),
    "scatter_": lambda x: x.scatter_(0, candelabra.tensor([0]), candelabra.tensor([9.0])),
    "masked_fill_": lambda x: x.masked_fill_(x > -1, 5),
    "apply_": lambda x: x.apply_(lambda v: v + 1),
    "out": lambda x: candelabra.add(candelabra.ones(COUNT), 1, out=x),
    "out of a scan": lambda x: candelabra.cumsum(candelabra.ones(COUNT), 0, out=x),
    "numpy": lambda x: x.numpy().__setitem__(0, 9),
    "dlpack": lambda x: candelabra.from_dlpack(x).add_(5),
    "buffer": lambda x: memoryview(x).__setitem__(0, 9.0),
    "storage": lambda x: x.untyped_storage().fill_(1),
    "slice of a storage": lambda x: x.untyped_storage()[0:4].fill_(7),
    "resize_": lambda x: x.resize_(3 * COUNT).fill_(1),
    "resize_ of a storage": lambda x: x.untyped_storage().resize_(100).fill_(1),
    "foreach": lambda x: candelabra._foreach_add_([x], 1) if hasattr(candelabra, "_foreach_add_") else x.add_(1),
}


def is_shared(tensor: candelabra.Tensor) -> bool:
    return _C.is_copy_on_write(tensor.untyped_storage())


def address(tensor: candelabra.Tensor) -> int:
    return _C.storage_address(tensor.untyped_storage())


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_changes_one_of_those_that_share(write):
    base = candelabra.arange(COUNT, dtype=candelabra.float32)
    first, second = base._lazy_clone(), base._lazy_clone()
    assert address(first) == address(second) == address(base) and is_shared(base)
    write(first)
    assert not is_shared(first) and is_shared(second)
    assert base.tolist() == second.tolist() == list(range(COUNT))
    write(base)
    assert second.tolist() == list(range(COUNT))


def test_reading_shares_and_the_last_takes_the_memory():
    base = candelabra.arange(COUNT)
    start = address(base)
    clone = base._lazy_clone()
    assert (base + clone).tolist() == [2 * i for i in range(COUNT)] and is_shared(base) and is_shared(clone.view(2, 3))
    base += 1
    assert address(base) != start and not is_shared(base) and is_shared(clone)
    clone += 1
    assert address(clone) == start and not is_shared(clone)
    assert base.tolist() == clone.tolist()


def test_memory_that_others_know_is_copied_at_once():
    array = np.ones(3, np.float32)
    exported = candelabra.ones(3)
    view = exported.numpy()
    known = candelabra.ones(3)
    known.data_ptr()
    for tensor in (candelabra.from_numpy(array), exported, known):
        clone = tensor._lazy_clone()
        assert not is_shared(clone) and clone.tolist() == [1, 1, 1]
    assert view.tolist() == [1, 1, 1]


def test_data_ptr_gives_memory_of_its_own():
    base = candelabra.ones(3)
    clone = base._lazy_clone()
    assert clone.data_ptr() != address(base) and not is_shared(clone)
