"""A convolutional net on images from a Dataset with transforms, read by DataLoader workers; SGD
with momentum, StepLR, best model kept.
"""

import argparse
import copy
import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset, random_split


class Shapes(Dataset):
    """Bars that lie, bars that stand, and squares, at places of chance."""

    def __init__(self, count, transform=None):
        rng = np.random.RandomState(0)
        self.labels = rng.randint(0, 3, count)
        self.corners = rng.randint(1, 7, (count, 2))
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = np.zeros((12, 12, 1), dtype=np.uint8)
        row, column = self.corners[index]
        height, width = [(1, 5), (5, 1), (4, 4)][self.labels[index]]
        image[row : row + height, column : column + width] = 255
        if self.transform:
            image = self.transform(image)
        return image, int(self.labels[index])


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(image).permute(2, 0, 1).contiguous().float().div(255)


class RandomFlip:
    def __call__(self, image):
        return image.flip(-1) if random.random() < 0.5 else image


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)

    def __call__(self, image):
        return image.sub(self.mean).div_(self.std)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(3),
        )  # fmt: skip
        self.classifier = nn.Linear(16 * 9, 3)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    transform = Compose([ToTensor(), RandomFlip(), Normalize([0.1], [0.3])])
    train, val = random_split(Shapes(480, transform), [0.8, 0.2], generator=torch.Generator().manual_seed(1))
    loaders = {
        "train": DataLoader(
            train, batch_size=32, shuffle=True, num_workers=args.workers, worker_init_fn=seed_worker, drop_last=True
        ),
        "val": DataLoader(val, batch_size=32, num_workers=args.workers, persistent_workers=args.workers > 0),
    }
    model = Net().to(device, memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3)
    best_acc, best = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(args.epochs):
        for phase in ("train", "val"):
            model.train(phase == "train")
            running_loss, running_corrects, seen = 0.0, 0, 0
            for inputs, labels in loaders[phase]:
                inputs, labels = inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
                seen += inputs.size(0)
            if phase == "train":
                scheduler.step()
            acc = running_corrects.double() / seen
            print(f"{epoch} {phase} loss {running_loss / seen:.4f} acc {acc:.4f}")
            if phase == "val" and acc > best_acc:
                best_acc, best = acc.item(), copy.deepcopy(model.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "best.pth")
        torch.save(
            {
                "epoch": args.epochs,
                "arch": "net",
                "state_dict": best,
                "best_acc1": best_acc,
                "optimizer": optimizer.state_dict(),
            },
            path,
        )
        checkpoint = torch.load(path, map_location=device, weights_only=True)
    again = Net()
    print(again.load_state_dict(checkpoint["state_dict"]))
    optimizer.load_state_dict(checkpoint["optimizer"])
    again.eval()
    with torch.inference_mode():
        images, labels = next(iter(loaders["val"]))
        right = (again(images).softmax(1).argmax(1) == labels).float().mean().item()
    assert best_acc > 0.85 and right > 0.8, (best_acc, right)
    print("learned", best_acc, right)


if __name__ == "__main__":
    main()
