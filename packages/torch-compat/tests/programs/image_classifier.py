"""A convolutional net on images made here, with a learning rate schedule, evaluation and a
checkpoint.
"""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout = nn.Dropout(0.1)
        self.fc1 = nn.Linear(16 * 3 * 3, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def images(count, generator):
    """Squares in one of four corners, in noise."""
    labels = torch.randint(0, 4, (count,), generator=generator)
    data = 0.3 * torch.randn(count, 1, 8, 8, generator=generator)
    for i in range(count):
        row, column = divmod(labels[i].item(), 2)
        data[i, 0, 4 * row : 4 * row + 3, 4 * column : 4 * column + 3] += 1
    return data, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if not args.no_cuda and torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    train, test = images(512, generator), images(128, generator)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for first in range(0, 512, 32):
            data, target = train[0][first : first + 32].to(device), train[1][first : first + 32].to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        pred = model(test[0].to(device)).argmax(dim=1, keepdim=True)
        correct = pred.eq(test[1].to(device).view_as(pred)).sum().item()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.save(model.state_dict(), path)
        again = Net()
        again.load_state_dict(torch.load(path, map_location="cpu"))
        again.eval()
        with torch.no_grad():
            assert torch.equal(again(test[0]), model.cpu()(test[0]))
    assert correct > 115, correct
    print("learned", correct, "of 128")


if __name__ == "__main__":
    main()
