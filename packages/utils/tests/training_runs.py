"""Trainer runs that tests start, interrupt and kill. Also a program: ``training_runs.py FOLDER
KIND``.
"""

from __future__ import annotations

import random
import sys

import candelabra
from candelabra import nn, optim
from candelabra.utils import Trainer
from candelabra.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from candelabra.utils.trainer import Checkpoints, CSVLog, Curves, EarlyStopping

N, BATCH, EPOCHS = 40, 4, 3


class Noisy(Dataset):
    """Samples that draw from Candelabra's and Python's random generators on each access."""

    def __getitem__(self, index):
        x = candelabra.full((3,), float(index)) / N + 0.1 * candelabra.randn(3)
        return x, x.sum() + 0.01 * random.random()

    def __len__(self):
        return N


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(N):
            x = candelabra.rand(3) + index / N
            yield x, x.sum()


class Drawn:
    """A plain iterable instead of a DataLoader. It draws its order from Python's generator, and
    batches from Candelabra's.
    """

    def __iter__(self):
        order = list(range(N // BATCH))
        random.shuffle(order)
        for number in order:
            x = candelabra.randn(BATCH, 3) + number
            yield x, x.sum(1)

    def __len__(self):
        return N // BATCH


def plain():
    x = candelabra.linspace(-1, 1, 3 * N).reshape(N, 3)
    return TensorDataset(x, x.sum(1))


LOADERS = {
    "tensors": lambda: DataLoader(plain(), BATCH, shuffle=True),
    "generator": lambda: DataLoader(plain(), BATCH, shuffle=True, generator=candelabra.Generator().manual_seed(5)),
    "noisy": lambda: DataLoader(Noisy(), BATCH, shuffle=True),
    "workers": lambda: DataLoader(Noisy(), BATCH, shuffle=True, num_workers=2, seed_each_batch=True),
    "persistent": lambda: DataLoader(plain(), BATCH, shuffle=True, num_workers=1, persistent_workers=True),
    "stream": lambda: DataLoader(Stream(), BATCH),
    "list": lambda: list(DataLoader(plain(), BATCH)),
    "drawn": Drawn,
}


def make(folder=None, kind="tensors", every=1, keep_last=2, callbacks=(), **options):
    """Make a trainer with a random model and state in all of its parts."""
    candelabra.manual_seed(11)
    random.seed(12)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 1), nn.Flatten(0))
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    settings = {
        "scheduler": optim.lr_scheduler.MultiStepLR(optimizer, [5, 17], gamma=0.5),
        "schedule_by": "step",
        "accumulate": 3,  # does not divide the ten batches of an epoch
        "clip_norm": 1.0,
        "progress_bar": False,
        "callbacks": callbacks,
        "checkpoints": None if folder is None else Checkpoints(folder, every_steps=every, keep_last=keep_last, keep_best=1),
    } | options  # fmt: skip
    return Trainer(model, optimizer, nn.functional.mse_loss, **settings), LOADERS[kind]()


def weights(trainer):
    """Return all numbers of the model and of the optimizer in one list."""
    state = trainer.model.state_dict()
    numbers = [number for tensor in state.values() for number in tensor.double().reshape(-1).tolist()]
    for entries in trainer.optimizer.state_dict()["state"].values():
        for value in entries.values():
            numbers += value.double().reshape(-1).tolist()
    return numbers


def main(folder, kind):
    """Continue the previous run to the end."""
    logs = [CSVLog(f"{folder}/log.csv"), Curves(f"{folder}/curves.svg"), EarlyStopping(patience=100)]
    trainer, loader = make(folder, kind, callbacks=[logs[0], logs[2]])
    trainer.fit(loader, list(DataLoader(plain(), 10)), epochs=EPOCHS, eval_every=3, resume=True)
    candelabra.save({"weights": weights(trainer), "history": trainer.history}, f"{folder}/done.candelabra")


if __name__ == "__main__":
    main(*sys.argv[1:])
