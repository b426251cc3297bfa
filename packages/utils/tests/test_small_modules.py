"""Weak dictionaries, locks of files, the tracker of modules, and old names."""

from __future__ import annotations

import copy
import gc
import threading

import pytest

import candelabra
from candelabra import nn
from candelabra.utils import file_baton, model_zoo, module_tracker, set_module, swap_tensors, weak


def test_weak_dictionaries():
    x, y = candelabra.ones(2), candelabra.ones(2)
    names = weak.WeakTensorKeyDictionary({x: "x", y: "y"})
    assert names[x] == "x" and names[y] == "y" and candelabra.ones(2) not in names and 3 not in names
    assert {id(key) for key in names} == {id(x), id(y)} and len(names.keyrefs()) == 2
    assert names == {x: "x", y: "y"} and names != {x: "x"}
    assert (names | {x: "z"})[x] == "z" and ({x: "z"} | names)[x] == "x"
    assert names.copy() == names == copy.deepcopy(names)
    names |= {x: "again"}
    assert names.pop(x) == "again" and names.setdefault(x, 3) == 3 and names.get(candelabra.ones(1), 4) == 4
    del y
    gc.collect()
    assert len(names) == 1 and names.popitem() == (x, 3) and not names
    with pytest.raises(TypeError):
        hash(names)


def test_weak_references():
    x = candelabra.ones(2)
    first, second = weak.WeakIdRef(x), weak.WeakIdRef(x)
    assert first == second and hash(first) == hash(second) == id(x) and first != weak.WeakIdRef(candelabra.ones(2))
    reference = weak.TensorWeakRef(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None and first() is None and first != second
    with pytest.raises(AssertionError, match="expected candelabra.Tensor"):
        weak.TensorWeakRef(3)


def test_file_batons(tmp_path):
    path = str(tmp_path / "lock")
    baton, other = file_baton.FileBaton(path, 0.01), file_baton.FileBaton(path, 0.01, warn_after_seconds=0.02)
    assert baton.try_acquire() and not other.try_acquire()
    threading.Timer(0.2, baton.release).start()
    with pytest.warns(UserWarning, match="Waited on lock file"):
        other.wait()
    assert other.try_acquire()
    other.release()


def test_the_tracker_of_modules():
    seen: list = []

    class Show(nn.Module):
        def forward(self, x):
            seen.append(("forward", tracker.is_bw, sorted(tracker.parents)))
            x = x * 2
            x.register_hook(lambda grad: seen.append(("backward", tracker.is_bw, sorted(tracker.parents))))
            return x * 3

    model = nn.Sequential(Show(), nn.ReLU())
    with module_tracker.ModuleTracker() as tracker:
        model(candelabra.ones(2, requires_grad=True)).sum().backward()
    inside = ["Global", "Sequential", "Sequential.0"]
    assert seen == [("forward", False, inside), ("backward", True, inside)]
    assert tracker.parents == {"Global"}
    model(candelabra.ones(2, requires_grad=True))
    assert len(seen) == 3 and seen[-1] == ("forward", True, ["Global"])


def test_old_names():
    from candelabra import hub

    assert model_zoo.load_url is hub.load_state_dict_from_url

    def function():
        """Is moved."""

    set_module(function, "elsewhere")
    assert function.__module__ == "elsewhere"
    with pytest.raises(TypeError, match="should be a string"):
        set_module(function, 3)


def test_loaders_of_other_classes():
    from candelabra.utils.data.dataset_kind import DatasetKind
    from candelabra.utils.data.iterators import ByWorkers, InProcess

    class Loader:
        """Has what PyTorch's iterators need, as the loaders of fastai."""

        _IterableDataset_len_called, _auto_collation, collate_fn, drop_last = (
            None,
            False,
            staticmethod(lambda x: x),
            False,
        )
        generator, prefetch_factor, worker_init_fn, pin_memory, persistent_workers, timeout = (
            None,
            2,
            None,
            False,
            False,
            0,
        )
        _dataset_kind = DatasetKind.Iterable
        multiprocessing_context = None
        _index_sampler = range(10)

        def __init__(self, num_workers):
            self.num_workers, self.dataset = num_workers, self

        def __iter__(self):
            return iter([[1], [2, 3]])

    assert list(InProcess(Loader(0))) == [[1], [2, 3]]
    loader = Loader(1)
    loader.multiprocessing_context = candelabra.multiprocessing.get_context("fork")
    assert list(ByWorkers(loader)) == [[1], [2, 3]]
    fetcher = DatasetKind.create_fetcher(DatasetKind.Map, "abc", True, "".join, False)
    assert fetcher.fetch([2, 0]) == "ca"


def test_tensors_are_swapped():
    a, b = candelabra.ones(1), candelabra.arange(2)
    swap_tensors(a, b)
    assert a.tolist() == [0, 1]
    assert b.tolist() == [1]
