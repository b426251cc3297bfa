"""Test runs of several ranks that are resumed on another number: each sample is seen once.

The ranks are trainers in one process, which train in turn; tests/integration has real ones.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import candelabra
from candelabra import nn, optim
from candelabra.utils import Trainer
from candelabra.utils.data import BatchSampler, DataLoader, DistributedSampler, TensorDataset
from candelabra.utils.trainer import Checkpoints, Place, ranks

N = 48


def samples():
    return TensorDataset(candelabra.arange(N))


def loader_of(rank, count, batch=2, **options):
    sampler = DistributedSampler(samples(), count, rank, seed=4, **options)
    return DataLoader(samples(), batch, sampler=sampler)


class Rank:
    """One rank's trainer, and the samples that it has seen in each epoch."""

    def __init__(self, rank, count, batch=2):
        model = nn.Linear(1, 1)
        self.seen = {}
        self.trainer = Trainer(model, optim.SGD(model.parameters(), lr=1e-4), step=self.step, progress_bar=False)
        self.loader = loader_of(rank, count, batch)

    def step(self, model, batch):
        self.seen.setdefault(self.trainer.progress.epoch, []).extend(batch[0].tolist())
        return model(batch[0][:, None] / N).pow(2).mean()


def run(count, state=None, batch=2, **limit):
    """Train on some number of ranks; return what they have seen by epoch, and the state."""
    seen, made = {}, []
    for rank in range(count):
        each = Rank(rank, count, batch)
        if state is not None:
            each.trainer.load_state_dict(state)
        each.trainer.fit(each.loader, **limit)
        for epoch, found in each.seen.items():
            seen.setdefault(epoch, []).extend(found)
        made.append(each)
    return seen, made[0].trainer.state_dict()


def together(*parts):
    found = {}
    for part in parts:
        for epoch, seen in part.items():
            found.setdefault(epoch, []).extend(seen)
    return {epoch: sorted(seen) for epoch, seen in found.items()}


ONCE = list(range(N))


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (1, 3), (3, 1), (4, 1), (2, 2)])
@pytest.mark.parametrize("steps", [3, 6])  # what is left can be divided evenly
def test_each_sample_is_seen_once(before, after, steps):
    """In the epoch in which the run was saved, and in those after it."""
    length = N // before // 2
    first, state = run(before, steps=length + steps)  # in the second epoch
    second, _ = run(after, state, epochs=3)
    assert together(first, second) == {0: ONCE, 1: ONCE, 2: ONCE}


def test_the_batch_size_may_change():
    first, state = run(2, steps=3)
    second, _ = run(2, state, batch=3, epochs=1)
    assert together(first, second) == {0: ONCE}


def test_two_changes_in_one_epoch():
    first, state = run(4, steps=2)  # 16 of 48
    second, state = run(2, state, steps=5)  # 12 more
    third, state = run(2, state, steps=6)  # the same ranks: 4 more
    fourth, state = run(1, state, steps=8)  # 4 more
    fifth, _ = run(4, state, epochs=2)
    assert [len(part[0]) for part in (first, second, third, fourth)] == [16, 12, 4, 4]
    assert together(first, second, third, fourth, fifth) == {0: ONCE, 1: ONCE}


def test_the_same_ranks_go_on_with_the_same_batches():
    whole, _ = run(2, epochs=2)
    first, state = run(2, steps=15)
    second, _ = run(2, state, epochs=2)
    rank_0 = Rank(0, 2)
    rank_0.trainer.load_state_dict(state)
    rank_0.trainer.fit(rank_0.loader, epochs=2)
    again = Rank(0, 2)
    again.trainer.fit(again.loader, epochs=2)
    assert again.seen[1][6:] == rank_0.seen[1]  # 3 steps of 2 samples were taken before
    assert together(first, second) == together(whole)


def test_an_epoch_that_has_ended_is_not_repeated():
    first, state = run(2, epochs=1)
    assert state["place"]["share"]["start"] == 0 and not Place.is_within_epoch(state["place"])
    second, _ = run(3, state, epochs=2)
    assert together(first, second) == {0: ONCE, 1: ONCE}
    # All samples are taken, but the end of the epoch was not reached.
    first, state = run(2, steps=N // 4)
    second, _ = run(3, state, epochs=2)
    assert together(first, second) == {0: ONCE, 1: ONCE}


def test_an_interruption_before_the_first_batch():
    """The position is kept if the resumed run stops before it has taken a batch."""
    _, state = run(4, steps=2)
    place = Place(loader_of(0, 2))
    place.load_state_dict(state["place"])
    batches = iter(place)
    next(batches)
    place.batches = 0
    assert Place.is_within_epoch(place.state_dict())


def test_batch_samplers():
    def make(count, rank):
        return DataLoader(samples(), batch_sampler=BatchSampler(DistributedSampler(samples(), count, rank), 3, False))

    seen = []
    for rank in range(2):
        place = Place(make(2, rank))
        batches = iter(place)
        for _ in range(4):
            seen += next(batches)[0].tolist()
    later = Place(make(1, 0))
    later.load_state_dict(place.state_dict())
    seen += [number for (batch,) in later for number in batch.tolist()]
    assert sorted(seen) == ONCE


def test_other_orders_are_refused():
    place = Place(loader_of(0, 2))
    next(iter(place))
    state = place.state_dict()
    for loader, message in (
        (loader_of(0, 1, shuffle=False), "had another order"),
        (DataLoader(samples(), 2), "in the loader then and none now"),
    ):
        later = Place(loader)
        later.load_state_dict(state)
        with pytest.raises(ValueError, match=message):
            next(iter(later))
    place = Place(DataLoader(samples(), 2))
    next(iter(place))
    later = Place(loader_of(0, 2))
    later.load_state_dict(place.state_dict())
    with pytest.raises(ValueError, match="in the loader now and none then"):
        next(iter(later))


def test_the_start_of_a_sampler():
    parts = [DistributedSampler(range(11), 3, rank, shuffle=False) for rank in range(3)]
    for part in parts:
        part.set_start(4)
    assert [list(part) for part in parts] == [[4, 7, 10], [5, 8, 0], [6, 9, 1]] and len(parts[0]) == 3
    dropping = DistributedSampler(range(11), 3, 0, shuffle=False, drop_last=True)
    dropping.set_start(4)
    assert list(dropping) == [4, 7] and len(dropping) == 2
    dropping.set_epoch(1)
    assert list(dropping) == [0, 3, 6]
    parts[0].set_start(11)
    assert list(parts[0]) == [] and len(parts[0]) == 0
    for start in (-1, 12):
        with pytest.raises(ValueError, match="start must be from 0 to 11"):
            parts[0].set_start(start)


# ---- what the ranks exchange, with a stand-in for candelabra.distributed


class Distributed:
    """candelabra.distributed on one of two ranks; the other has given values."""

    ReduceOp = SimpleNamespace(MAX="max")
    group = SimpleNamespace(WORLD=SimpleNamespace(host_or_only_device=lambda: "cpu"))

    def __init__(self, rank, other):
        self.rank, self.other = rank, other

    def is_initialized(self):
        return True

    def get_world_size(self):
        return 2

    def get_rank(self):
        return self.rank

    def all_reduce(self, tensor, op):
        assert op == "max"
        tensor.clamp_(min=int(self.other))

    def gather_object(self, value, found, dst):
        assert dst == 0
        if found is not None:
            found[:] = [value, self.other]

    def broadcast_object_list(self, box, src):
        assert src == 0
        if self.rank:
            box[0] = self.other


def test_all_ranks_stop_together(monkeypatch):
    monkeypatch.setattr(ranks, "_distributed", lambda: Distributed(0, other=True))
    each = Rank(0, 2)
    each.trainer.fit(each.loader, epochs=1)
    assert each.trainer.stopped == "another rank" and each.trainer.progress.step == 0


def test_rank_0_writes_for_all(monkeypatch, tmp_path):
    _, state = run(2, steps=3)
    other = {"random": state["random"], "place": {**state["place"], "batches": 99}}
    each = Rank(0, 2)
    each.trainer.checkpoints = Checkpoints(tmp_path)
    each.trainer.fit(each.loader, steps=3)
    monkeypatch.setattr(ranks, "_distributed", lambda: Distributed(0, other))
    path = each.trainer.save_checkpoint()
    saved = candelabra.load(path)
    assert [rank["place"]["batches"] for rank in saved["ranks"]] == [3, 99]
    # Each rank takes its own part of it; a rank that was not there keeps its generators.
    monkeypatch.setattr(ranks, "_distributed", lambda: Distributed(1, path))
    second = Rank(1, 2).trainer
    second.checkpoints = Checkpoints(tmp_path)
    assert second._resume(True) and second._place_state["batches"] == 99 and second._random is not None
    before = path.stat().st_mtime_ns
    second._place_state = state["place"]
    assert second.save_checkpoint() == path and path.stat().st_mtime_ns == before
    saved["ranks"] = saved["ranks"][:1]
    second.load_state_dict(saved)
    assert second._place_state["batches"] == 3 and second._random is None


def test_states_of_sharded_optimizers_are_consolidated(tmp_path):
    each = Rank(0, 1)
    calls = []
    each.trainer.optimizer.consolidate_state_dict = lambda: calls.append(None)
    each.trainer.checkpoints = Checkpoints(tmp_path)
    each.trainer.fit(each.loader, steps=1)
    assert len(calls) == 1 and each.trainer.checkpoints.latest() is not None


def test_the_state_of_a_sharded_model_is_no_dict():
    each = Rank(0, 1)
    state = each.trainer.state_dict()
    each.trainer.model.state_dict = lambda: {"weight": SimpleNamespace(__sharded__=None)}
    with pytest.raises(NotImplementedError, match="the model is sharded: save\\(\\) and checkpoints= write a folder"):
        each.trainer.state_dict()
    with pytest.raises(ValueError, match="the model is sharded: load it before"):
        each.trainer.load_state_dict(state)


def test_folders_of_checkpoints(tmp_path):
    """They count once their index is there, and go with it first."""

    def write(path):
        path.mkdir()
        (path / "rank-00000-00000000.safetensors").touch()
        (path / "index.json").touch()

    checkpoints = Checkpoints(tmp_path, keep_last=2)
    for step in (1, 2, 3):
        checkpoints.save_by(write, step)
    assert [path.name for path in checkpoints.paths()] == ["step-00000002.candelabra", "step-00000003.candelabra"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [path.name for path in checkpoints.paths()]
    (checkpoints.path(3) / "index.json").unlink()
    assert checkpoints.latest() == checkpoints.path(2)
    checkpoints.remove_remnants()
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002.candelabra"]


def test_a_batch_that_one_rank_skips_is_skipped_by_all(monkeypatch):
    """Nobody waits for a rank that computes no gradients."""
    each = Rank(0, 2)
    each.trainer.on_nan = "skip"
    other = Distributed(0, other=True)
    monkeypatch.setattr(ranks, "_distributed", lambda: other)
    batch = next(iter(each.loader))
    assert each.trainer._train_batch(batch) is None and each.trainer.progress.skipped == 1
    other.other = False
    assert each.trainer._train_batch(batch) is not None and each.trainer.progress.skipped == 1
