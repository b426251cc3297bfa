"""Recurrent layers."""

from __future__ import annotations

from typing import Any

from ..inputs import normal
from ..workload import Workload, layer


def _packed(name: str, kind: str, backward: bool, batch: int, size: int, hidden: int, **options: Any) -> Workload:
    """Make a workload of packed sequences of 1 to `batch` steps."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    rows = batch * (batch + 1) // 2
    operations = 2.0 * rows * gates * hidden * (size + hidden) * (3 if backward else 1)

    def build(xp: Any) -> Any:
        module = getattr(xp.nn, kind)(size, hidden, **options)
        sizes = xp.tensor(list(range(batch, 0, -1)))

        class Packed(xp.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layer = module

            def forward(self, data: Any) -> Any:
                return self.layer(xp.nn.utils.rnn.PackedSequence(data, sizes))[0].data

        return Packed()

    return layer(
        f"nn.{kind} {name}", build, normal(rows, size, grad=backward), backward=backward, operations=operations, tolerance=1e-3,
    )  # fmt: skip


def _layer(name: str, kind: str, backward: bool, *shape: int, hidden: int = 128, **options: Any) -> Workload:
    steps, batch, size = shape
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    operations = 2.0 * steps * batch * gates * hidden * (size + hidden) * (3 if backward else 1)
    return layer(
        f"nn.{kind} {name}", lambda xp: getattr(xp.nn, kind)(size, hidden, **options), normal(*shape, grad=backward),
        backward=backward, operations=operations, tolerance=1e-3,
    )  # fmt: skip


WORKLOADS = [
    _layer("64 to 128, 32 steps, batch 32", "LSTM", False, 32, 32, 64),
    _layer("64 to 128, forward and backward", "LSTM", True, 32, 32, 64),
    _layer("16 to 16, 4 steps, batch 1", "LSTM", False, 4, 1, 16, hidden=16),
    _layer("256 to 512, 64 steps, batch 64", "LSTM", False, 64, 64, 256, hidden=512),
    _layer("64 to 128, two layers, both directions", "LSTM", False, 32, 32, 64, num_layers=2, bidirectional=True),
    _layer("64 to 128, 32 steps, batch 32", "GRU", False, 32, 32, 64),
    _layer("64 to 128, forward and backward", "GRU", True, 32, 32, 64),
    _layer("64 to 128, 32 steps, batch 32", "RNN", False, 32, 32, 64),
    _layer("64 to 128, forward and backward", "RNN", True, 32, 32, 64),
    _layer(
        "64 to 128, two layers, both directions, forward and backward",
        "GRU",
        True,
        32,
        32,
        64,
        num_layers=2,
        bidirectional=True,
    ),
    _layer("256 to 512, 64 steps, batch 64", "GRU", False, 64, 64, 256, hidden=512),
    _packed("64 to 128, 32 packed sequences", "LSTM", False, 32, 64, 128),
    _packed("64 to 128, 32 packed sequences, forward and backward", "LSTM", True, 32, 64, 128),
    _packed("64 to 128, 32 packed sequences, forward and backward", "GRU", True, 32, 64, 128),
    layer(
        "nn.LSTMCell 64 to 128, batch 32",
        lambda xp: xp.nn.LSTMCell(64, 128),
        normal(32, 64),
        operations=2.0 * 32 * 512 * 192,
    ),
    layer(
        "nn.GRUCell 64 to 128, batch 32",
        lambda xp: xp.nn.GRUCell(64, 128),
        normal(32, 64),
        operations=2.0 * 32 * 384 * 192,
    ),
]
