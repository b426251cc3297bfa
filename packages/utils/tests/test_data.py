"""Test datasets and samplers."""

import math

import numpy as np
import pytest

import candelabra
from candelabra.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_convert,
    random_split,
)


def generator(seed=0):
    return candelabra.Generator().manual_seed(seed)


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index]

    def __len__(self):
        return len(self.rows)


class Stream(IterableDataset):
    def __iter__(self):
        yield from "ab"

    def __len__(self):
        return 2


def test_base_classes_say_what_to_define():
    with pytest.raises(NotImplementedError, match="without __getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="without __iter__"):
        iter(IterableDataset())


def test_joined():
    joined = Rows([1, 2]) + Rows([3])
    assert isinstance(joined, ConcatDataset)
    assert [joined[index] for index in range(-3, 3)] == [1, 2, 3, 1, 2, 3]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        joined[-4]
    with pytest.raises(IndexError):
        joined[3]
    with pytest.raises(AssertionError, match="empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Stream()])
    chain = Stream() + Stream()
    assert isinstance(chain, ChainDataset)
    assert list(chain) == list("abab")
    assert len(chain) == 4
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([Rows([1])]))


def test_side_by_side():
    pairs = StackDataset(Rows([1, 2]), Rows("ab"))
    assert [pairs[0], pairs[1], len(pairs)] == [(1, "a"), (2, "b"), 2]
    assert pairs.__getitems__([1, 0]) == [(2, "b"), (1, "a")]
    named = StackDataset(x=Rows([1, 2]), y=Subset(Rows("abc"), [2, 0]))
    assert named.__getitems__([0, 1]) == [{"x": 1, "y": "c"}, {"x": 2, "y": "a"}]
    for arguments, options in (((Rows([1]), Rows([])), {}), ((Rows([1]),), {"x": Rows([1])}), ((), {})):
        with pytest.raises(ValueError, match=r"Size mismatch|both given|At least one"):
            StackDataset(*arguments, **options)


def test_tensor_dataset():
    rows = TensorDataset(candelabra.eye(3), candelabra.arange(3))
    assert len(rows) == 3
    assert [part.tolist() for part in rows[1]] == [[0, 1, 0], 1]
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(candelabra.eye(3), candelabra.arange(2))


def test_split():
    parts = random_split(Rows(list(range(10))), [0.3, 0.3, 0.4], generator(1))
    assert [len(part) for part in parts] == [3, 3, 4]
    assert sorted(row for part in parts for row in part) == list(range(10))
    again = random_split(range(10), [3, 3, 4], generator(1))
    assert [part.indices for part in parts] == [part.indices for part in again]
    assert [len(part) for part in random_split(range(11), [0.5, 0.5])] == [6, 5]
    with pytest.raises(ValueError, match="does not equal the length of the input dataset"):
        random_split(range(3), [1, 1])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(3), [-0.5, 1.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(1), [0.9, 0.1])


@pytest.mark.parametrize("lengths", [[math.inf, 1], [math.inf, -math.inf], [math.nan, 0.5]])
def test_random_split_refuses_numbers_that_are_not_finite(lengths):
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(3), lengths)


def test_random_sampler():
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    first, second = (list(RandomSampler(range(50), generator=generator(2))) for _ in range(2))
    assert first == second
    assert sorted(first) == list(range(50)) != first
    assert len(list(RandomSampler(range(5), num_samples=12))) == 12
    drawn = list(RandomSampler(range(4), replacement=True, num_samples=4000, generator=generator()))
    counts = np.bincount(drawn, minlength=4)
    assert len(drawn) == 4000
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)
    with pytest.raises(TypeError, match="replacement should be a boolean"):
        RandomSampler(range(3), replacement=1)
    with pytest.raises(ValueError, match="num_samples should be a positive integer"):
        RandomSampler(range(3), num_samples=0)


def test_weighted_sampler():
    drawn = list(WeightedRandomSampler([1.0, 3.0], 4000, generator=generator()))
    assert abs(np.mean(drawn) - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
    assert sorted(WeightedRandomSampler([0.1, 0.2, 5.0], 3, replacement=False)) == [0, 1, 2]
    for arguments, message in ((([1], 0), "num_samples"), (([1], 1, 2), "replacement"), (([[1.0]], 1), "1d sequence")):
        with pytest.raises(ValueError, match=message):
            WeightedRandomSampler(*arguments)


def test_batches():
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, drop)) for drop in (True, False)] == [2, 3]
    assert sorted(SubsetRandomSampler([3, 8])) == [3, 8]
    with pytest.raises(ValueError, match="batch_size should be a positive integer"):
        BatchSampler(range(5), 0, False)
    with pytest.raises(ValueError, match="drop_last should be a boolean"):
        BatchSampler(range(5), 1, 1)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("count", "replicas"), [(10, 3), (9, 3), (2, 5), (0, 2)])
def test_distributed(count, replicas, drop_last):
    samplers = [DistributedSampler(range(count), replicas, rank, drop_last=drop_last) for rank in range(replicas)]
    shares = [list(sampler) for sampler in samplers]
    assert (
        {len(share) for share in shares}
        == {len(samplers[0])}
        == {count // replicas if drop_last else -(-count // replicas)}
    )
    together = [number for share in shares for number in share]
    assert len(set(together)) == (len(together) if drop_last else count)
    if count == 10:
        for sampler in samplers:
            sampler.set_epoch(1)
        assert [list(sampler) for sampler in samplers] != shares


def test_distributed_arguments():
    with pytest.raises(ValueError, match="Invalid rank 2"):
        DistributedSampler(range(3), 2, 2)
    with pytest.raises(RuntimeError, match="Requires distributed package"):
        DistributedSampler(range(3))


def test_convert():
    converted = default_convert([np.zeros(2), (1, np.float32(2.0)), {"a": np.array(["s"])}])
    assert converted[0].tolist() == [0, 0]
    assert converted[1][0] == 1
    assert converted[1][1].item() == 2.0
    assert converted[2]["a"].tolist() == ["s"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["random_"]),
        ({"shuffle": True}, ["random_", "random_", 10, 10]),
        ({"sampler": RandomSampler(range(10), num_samples=25)}, ["random_", "random_", 10, 10, 10]),
        ({"sampler": SubsetRandomSampler([1, 2, 3])}, ["random_", 3]),
    ],
    ids=["in-order", "shuffled", "more-samples", "subset"],
)
def test_an_epoch_draws_what_it_draws_in_pytorch(options, expected, monkeypatch):
    """Recorded on PyTorch 2.13: a seed for workers, one for the order, and whole permutations, one
    more than the epoch needs.
    """
    drawn = []
    random_, randperm = candelabra.Tensor.random_, candelabra.randperm
    monkeypatch.setattr(
        candelabra.Tensor,
        "random_",
        lambda self, *ends, **rest: (drawn.append("random_"), random_(self, *ends, **rest))[1],
    )
    monkeypatch.setattr(candelabra, "randperm", lambda n, **rest: (drawn.append(n), randperm(n, **rest))[1])
    for _ in range(2):
        for _ in DataLoader(range(10), batch_size=4, **options):
            pass
    assert drawn == expected * 2
