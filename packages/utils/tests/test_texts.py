"""Test the representations of datasets, samplers, loaders and trainers."""

import pytest

import candelabra as c
from candelabra import nn, optim
from candelabra.utils import Trainer, data

ROWS = data.TensorDataset(c.ones(4, 2), c.zeros(4, dtype=c.int64))


class Own(data.Dataset):
    def __len__(self):
        raise AssertionError("a representation asks for no length")


class Numbers(data.IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ROWS, "TensorDataset((4, 2) float32, (4,) int64)"),
        (data.Subset(ROWS, [1, 2]), "Subset(2 of TensorDataset((4, 2) float32, (4,) int64))"),
        (data.ConcatDataset([[1, 2], [3]]), "ConcatDataset([list of 2, list of 1])"),
        (data.StackDataset(a=[1], b=[2]), "StackDataset(a=list of 1, b=list of 1)"),
        (data.StackDataset([1], [2]), "StackDataset(list of 1, list of 1)"),
        (data.ChainDataset([Numbers(), Numbers()]), "ChainDataset([Numbers(...), Numbers(...)])"),
        (data.ChainDataset(iter([Numbers()])), "ChainDataset([...])"),
        (Own(), "Own(...)"),
        (data.SequentialSampler([1, 2]), "SequentialSampler(2)"),
        (data.RandomSampler([1, 2]), "RandomSampler(2)"),
        (data.RandomSampler([1, 2], True, 5), "RandomSampler(2, replacement=True, num_samples=5)"),
        (data.SubsetRandomSampler([4, 2]), "SubsetRandomSampler(2 indices)"),
        (
            data.WeightedRandomSampler([0.5, 0.5], 3),
            "WeightedRandomSampler(2 weights, num_samples=3, replacement=True)",
        ),
        (
            data.BatchSampler(data.SequentialSampler([1, 2]), 2, False),
            "BatchSampler(SequentialSampler(2), batch_size=2, drop_last=False)",
        ),
        (
            data.DistributedSampler([1, 2], 2, 1),
            "DistributedSampler(list of 2, rank=1, num_replicas=2, shuffle=True)",
        ),
        (
            data.DataLoader(ROWS, 2, shuffle=True, drop_last=True),
            "DataLoader(TensorDataset((4, 2) float32, (4,) int64), batch_size=2, sampler=RandomSampler(4), drop_last=True)",
        ),
    ],
)
def test_what_it_is_made_of(value, text):
    assert repr(value) == text


def test_loaders_of_streams_and_of_batch_samplers():
    assert " at 0x" not in repr(data.DataLoader(Numbers()))
    batches = data.BatchSampler(data.SequentialSampler(ROWS), 2, False)
    assert repr(batches) in repr(data.DataLoader(ROWS, batch_sampler=batches))
    assert " at 0x" not in repr(data.DataLoader(ROWS, batch_size=None))


def test_a_trainer_says_how_far_it_is():
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, nn.functional.mse_loss, device="cpu", progress_bar=False)
    assert repr(trainer) == "Trainer(Linear, SGD, loss=mse_loss, device='cpu'; epoch 0, step 0)"
    trainer.fit(data.DataLoader(data.TensorDataset(c.ones(4, 2), c.ones(4, 1)), 2), epochs=1)
    assert repr(trainer).endswith("; epoch 1, step 2)")


def test_a_trainer_with_all_options():
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(
        model, optimizer, step=lambda model, batch: model(batch).sum(), scheduler=optim.lr_scheduler.StepLR(optimizer, 1),
        precision="bfloat16", accumulate=2, device="cpu", progress_bar=False,
    )  # fmt: skip
    text = repr(trainer)
    assert " at 0x" not in text
    assert "scheduler=StepLR" in text
    assert "precision='bfloat16', accumulate=2" in text
