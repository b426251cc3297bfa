"""Train models end to end: data, layers, losses, gradients, optimizers, schedules."""

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F


def fit(model, optimizer, images, classes, epochs, batch=64, schedule=None, clip=None):
    losses = []
    for _ in range(epochs):
        order = candelabra.randperm(len(images))
        total = 0.0
        for start in range(0, len(images), batch):
            chosen = order[start : start + batch]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[chosen]), classes[chosen])
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if schedule is not None:
                schedule.step()
            total += loss.item() * len(chosen)
        losses.append(total / len(images))
    return losses


def accuracy(model, images, classes):
    model.eval()
    with candelabra.no_grad():
        correct = (model(images).argmax(1) == classes).sum().item()
    model.train()
    return correct / len(images)


def mlp():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}),
        ("Adam", {"lr": 0.01}),
        ("AdamW", {"lr": 0.01, "amsgrad": True}),
        ("RMSprop", {"lr": 0.005}),
        ("Adagrad", {"lr": 0.1}),
    ],
)
def test_mlp_on_digits(digits, name, options):
    train_x, train_y, test_x, test_y = digits
    model = mlp()
    optimizer = getattr(optim, name)(model.parameters(), **options)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=25 * 22)
    losses = fit(model, optimizer, train_x, train_y, epochs=25, schedule=schedule)
    assert losses[-1] < 0.1 * losses[0]
    assert accuracy(model, test_x, test_y) > 0.95


def test_fused_and_plain_training_agree(digits):
    train_x, train_y, _, _ = digits
    results = []
    for fused in (True, False):
        candelabra.manual_seed(1)
        model = mlp().double()
        optimizer = optim.AdamW(model.parameters(), lr=0.01, fused=fused)
        fit(model, optimizer, train_x[:256].double(), train_y[:256], epochs=2)
        results.append(nn.utils.parameters_to_vector(model.parameters()).detach().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9, atol=1e-12)


class ConvolutionalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding="same", bias=False), nn.GroupNorm(4, 32), nn.SiLU(), nn.AvgPool2d(2),
        )  # fmt: skip
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(32 * 4, 10))

    def forward(self, images):
        return self.classify(self.features(images.reshape(-1, 1, 8, 8)))


def test_convolutional_net_on_digits(digits):
    train_x, train_y, test_x, test_y = digits
    model = ConvolutionalNet()
    optimizer = optim.AdamW(model.parameters(), lr=0.001)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, epochs=6, steps_per_epoch=22)
    losses = fit(model, optimizer, train_x, train_y, epochs=6, schedule=schedule, clip=5.0)
    assert losses[-1] < 0.2
    assert accuracy(model, test_x, test_y) > 0.96
    assert int(model.features[1].num_batches_tracked) == 6 * 22


def test_embedding_learns_a_table():
    # Learn the parity of a number by logistic regression, which needs a table.
    table = nn.Embedding(16, 1)
    numbers = candelabra.arange(16)
    parity = (numbers % 2).float()
    optimizer = optim.SGD(table.parameters(), lr=5.0)
    for _ in range(100):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(table(numbers).squeeze(1), parity).backward()
        optimizer.step()
    assert ((table(numbers).squeeze(1) > 0) == (parity > 0)).all().item()


def test_attention_learns_to_copy(rng):
    # Each position retrieves the value at position 0, which causal attention can do.
    ask = nn.Linear(4, 4, bias=False)
    optimizer = optim.Adam(ask.parameters(), lr=0.05)
    keys = candelabra.eye(4).unsqueeze(0)
    values = candelabra.tensor(rng.standard_normal((1, 4, 2)), dtype=candelabra.float32)
    target = values[:, :1].expand(1, 4, 2)
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.mse_loss(F.scaled_dot_product_attention(ask(keys) * 10, keys, values, is_causal=True), target)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-2


def test_least_squares_finds_the_solution(rng):
    x = rng.standard_normal((50, 3))
    truth = rng.standard_normal((3, 2))
    y = x @ truth + 0.5
    model = nn.Linear(3, 2).double()
    optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300)
    inputs, targets = candelabra.tensor(x), candelabra.tensor(y)
    for _ in range(300):
        optimizer.zero_grad()
        F.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(model.weight.detach().numpy(), truth.T, atol=1e-6)
    np.testing.assert_allclose(model.bias.detach().numpy(), [0.5, 0.5], atol=1e-6)


def test_closures_and_plateaus():
    weight = nn.Parameter(candelabra.tensor([4.0, -3.0]))
    optimizer = optim.SGD([weight], lr=0.4)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)

    def closure():
        optimizer.zero_grad()
        loss = (weight**4).sum()
        loss.backward()
        return loss

    with candelabra.no_grad():
        weight.mul_(0.2)
    first = optimizer.step(closure).item()
    for _ in range(50):
        loss = optimizer.step(closure)
        schedule.step(loss)
    assert loss.item() < 1e-3 * first


def test_frozen_parameters_stay(digits):
    train_x, train_y, _, _ = digits
    model = mlp()
    model[0].requires_grad_(False)
    before = model[0].weight.numpy().copy()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    fit(model, optimizer, train_x[:128], train_y[:128], epochs=1)
    np.testing.assert_array_equal(model[0].weight.numpy(), before)
    assert model[0].weight.grad is None and len(optimizer.state) == 2


def test_gradient_accumulation(digits):
    train_x, train_y, _, _ = digits
    model = mlp().double()
    images = train_x[:64].double()
    F.cross_entropy(model(images), train_y[:64]).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for start in range(0, 64, 16):
        (F.cross_entropy(model(images[start : start + 16]), train_y[start : start + 16]) / 4).backward()
    for parameter, expected in zip(model.parameters(), whole, strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
