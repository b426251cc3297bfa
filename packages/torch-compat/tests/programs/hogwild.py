"""Hogwild: processes train one model in shared memory, without locks, each with its own
optimizer.
"""

import argparse

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 32)
        self.fc2 = nn.Linear(32, 2)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def data(seed):
    x = torch.randn(400, 4, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


def train(rank, args, model, steps):
    torch.manual_seed(args.seed + rank)
    torch.set_num_threads(1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for _ in range(args.epochs):
        for x, y in DataLoader(data(rank), batch_size=20, shuffle=True):
            optimizer.zero_grad()
            F.nll_loss(model(x), y).backward()
            optimizer.step()
            steps += 1


def accuracy(model):
    x, y = data(1000).tensors
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Net()
    model.share_memory()
    assert all(p.is_shared() for p in model.parameters())
    before, weight = accuracy(model), model.fc1.weight.detach().clone()
    # Started by hand, as most programs do, and by spawn.
    mp.set_start_method("spawn", force=True)
    steps = torch.zeros((), dtype=torch.long).share_memory_()
    processes = []
    for rank in range(args.processes):
        p = mp.Process(target=train, args=(rank, args, model, steps))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
        assert p.exitcode == 0
    middle = accuracy(model)
    mp.spawn(train, args=(args, model, steps), nprocs=1, join=True)
    after = accuracy(model)
    assert not torch.equal(weight, model.fc1.weight)
    assert steps.item() > 0 and max(middle, after) > 0.85 > before, (steps, before, middle, after)
    print("learned", before, middle, after)
