"""Training of a small detector: proposals from a convolution, and a head on RoI align."""

from __future__ import annotations

import candelabra
from candelabra import nn, optim, vision_ops

SIZE = 32


def images_with_squares(count):
    """Images with a bright or a dark square, and its box and class."""
    images, boxes, labels = candelabra.full((count, 1, SIZE, SIZE), 0.5), [], []
    for n in range(count):
        x, y = (int(candelabra.randint(0, 20, ())) for _ in range(2))
        size = int(candelabra.randint(6, 12, ()))
        label = n % 2
        images[n, 0, y : y + size, x : x + size] = float(label)
        boxes.append([float(x), float(y), float(x + size), float(y + size)])
        labels.append(label)
    return images, candelabra.tensor(boxes), candelabra.tensor(labels)


class Detector(nn.Module):
    """A head that classifies and moves proposals."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(8 * 7 * 7, 64), nn.ReLU())
        self.classes, self.moves = nn.Linear(64, 2), nn.Linear(64, 4)

    def forward(self, images, rois):
        around = rois + candelabra.tensor([0.0, -4.0, -4.0, 4.0, 4.0])
        pooled = vision_ops.roi_align(self.features(images), around, 0.5, 7, 7, 2, True)
        hidden = self.head(pooled)
        return self.classes(hidden), self.moves(hidden)


def proposals(boxes):
    """Boxes that miss the truth by up to three pixels."""
    moved = boxes + candelabra.randint(-3, 4, tuple(boxes.shape))
    return candelabra.cat((candelabra.arange(len(boxes)).unsqueeze(1).float(), moved), 1)


def test_training_lowers_the_losses():
    candelabra.manual_seed(3)
    model = Detector()
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    images, boxes, labels = images_with_squares(24)
    for _ in range(150):
        rois = proposals(boxes)
        classes, moves = model(images, rois)
        loss = nn.functional.cross_entropy(classes, labels)
        loss = loss + nn.functional.smooth_l1_loss(moves, boxes - rois[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with candelabra.no_grad():
        rois = proposals(boxes)
        classes, moves = model(images, rois)
        found = rois[:, 1:] + moves
    assert (classes.argmax(1) == labels).float().mean().item() >= 0.95
    assert (found - boxes).abs().mean().item() < 0.7 * (rois[:, 1:] - boxes).abs().mean().item()
    # Proposals of one image suppress each other, those of others do not: they lie far apart.
    apart = found + 1000 * rois[:, :1]
    kept = vision_ops.nms(candelabra.cat((apart, apart + 0.5)), candelabra.cat((classes.amax(1), classes.amin(1))), 0.5)
    assert len(kept) == len(boxes)
