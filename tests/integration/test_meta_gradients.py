"""Training on the device meta: gradients and optimizer steps have shapes, and no memory."""

from __future__ import annotations

import candelabra
import candelabra.optim
from candelabra import nn
from candelabra.nn import functional as F


def test_a_training_step():
    with candelabra.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        head = nn.Linear(8 * 16, 10)
        loss = F.cross_entropy(head(model(candelabra.randn(4, 3, 8, 8)).flatten(1)), candelabra.randint(10, (4,)))
    loss.backward()
    parameters = [*model.parameters(), *head.parameters()]
    assert all(p.grad.is_meta and p.grad.shape == p.shape for p in parameters)
    candelabra.optim.AdamW(parameters).step()
    assert all(p.is_meta for p in parameters)


def test_sequence_models():
    with candelabra.device("meta"):
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, batch_first=True), 2)
        lstm = nn.LSTM(16, 5, 2, batch_first=True, bidirectional=True)
        out, _ = lstm(encoder(candelabra.randn(2, 6, 16)))
    out.sum().backward()
    assert out.shape == (2, 6, 10)
    assert all(p.grad.shape == p.shape for p in (*encoder.parameters(), *lstm.parameters()))


def test_function_transforms():
    t = candelabra.randn(3, 4, device="meta")
    assert candelabra.func.vmap(candelabra.sin)(t).shape == (3, 4)
    assert candelabra.func.grad(lambda x: (x * x).sum())(t).shape == (3, 4)
    assert candelabra.func.jvp(candelabra.sin, (t,), (t,))[1].is_meta
