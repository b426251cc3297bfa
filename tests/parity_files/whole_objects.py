"""Whole modules, optimizers and other objects through both libraries, by ``torch.save`` of each."""

from __future__ import annotations

import argparse
import datetime
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import candelabra
from candelabra.torch.files import loading, saving

Make = Callable[[Any], Any]

#: Modules, and the shapes of their inputs.
MODULES: list[tuple[Make, list[tuple[int, ...]]]] = [
    (lambda nn: nn.Linear(2, 3), [(4, 2)]),
    (lambda nn: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten()), [(2, 1, 5, 5)]),
    (lambda nn: nn.ConvTranspose1d(2, 1, 3), [(1, 2, 4)]),
    (lambda nn: nn.ModuleList([nn.Linear(2, 2), nn.GELU()])[0], [(1, 2)]),
    (lambda nn: nn.LSTM(2, 3, num_layers=2, bidirectional=True), [(4, 1, 2)]),
    (lambda nn: nn.GRU(2, 3), [(4, 1, 2)]),
    (lambda nn: nn.LSTMCell(2, 3), [(4, 2)]),
    (lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2, enable_nested_tensor=False), [(3, 1, 4)]),
    (lambda nn: nn.Transformer(4, 2, 1, 1, 8, 0.0), [(3, 1, 4), (2, 1, 4)]),
    (lambda nn: nn.MultiheadAttention(4, 2), [(3, 1, 4)] * 3),
    (lambda nn: nn.Sequential(nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.Softmax(1), nn.Dropout(0.0)), [(2, 4)]),
    (lambda nn: nn.InstanceNorm2d(2, affine=True), [(1, 2, 3, 3)]),
    (lambda nn: nn.Sequential(nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.AdaptiveAvgPool2d(1)), [(1, 2, 4, 4)]),
    (lambda nn: nn.Bilinear(2, 3, 2), [(4, 2), (4, 3)]),
    (lambda nn: nn.PReLU(), [(3,)]),
    (lambda nn: nn.utils.weight_norm(nn.Linear(2, 3)), [(4, 2)]),
    (lambda nn: nn.MSELoss(), [(3,), (3,)]),
    (lambda nn: nn.PixelShuffle(2), [(1, 4, 2, 2)]),
]  # fmt: skip


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def modules() -> None:
    """Check that a module of one library computes the same in the other, and trains on."""
    count = 0
    for make, shapes in MODULES:
        arrays = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in shapes]
        for options in ({}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs, mine = make(torch.nn), make(candelabra.nn)
                file = io.BytesIO()
                torch.save(theirs, file, **options)
                file.seek(0)
                read = loading.load(file, weights_only=False)
                assert type(read) is type(mine), type(read)
                _same(theirs, read, arrays)
                file = io.BytesIO()
                saving.save(mine, file, **options)
                file.seek(0)
                back = torch.load(file, weights_only=False)
                assert type(back) is type(theirs), type(back)
                _same(back, mine, arrays)
                # Registered names are not attributes besides.
                back.double()
                assert all(p.dtype is torch.float64 for p in back.parameters())
                getattr(back, "weight", torch.zeros(0)).sum()
            count += 1
    print(f"whole modules: {count} both ways")


def _same(theirs: Any, mine: Any, arrays: list[Any]) -> None:
    expected = _first(theirs(*map(torch.tensor, arrays)))
    found = _first(mine(*map(candelabra.tensor, arrays)))
    assert np.allclose(expected.detach().numpy(), found.detach().numpy(), atol=1e-5), type(mine)
    assert list(theirs.state_dict()) == list(mine.state_dict())


def _objects(torch_like: Any) -> dict[str, Any]:
    parameter = torch_like.nn.Parameter(torch_like.ones(2))
    optimizer = torch_like.optim.AdamW([parameter])
    parameter.grad = torch_like.ones(2)
    optimizer.step()
    with_attribute = torch_like.ones(2)
    with_attribute.note = "kept"
    return {
        "optimizer": optimizer, "scheduler": torch_like.optim.lr_scheduler.StepLR(optimizer, 2),
        "distribution": torch_like.distributions.Normal(0.0, 1.0), "attribute": with_attribute,
        "functions": [torch_like.nn.functional.gelu, torch_like.relu, torch_like.nn.init.xavier_uniform_],
        "classes": [torch_like.nn.Linear, torch_like.optim.SGD, torch_like.Tensor, torch_like.Size],
        "own": [torch_like.float16, torch_like.strided, torch_like.device("cpu"), torch_like.Size([1, 2])],
        "arrays": [np.arange(3), np.float32(2.0), np.array([{"x": 1}], object)], "namespace": argparse.Namespace(lr=0.1),
        "date": datetime.date(2026, 1, 2), "set": {1, frozenset([2])}, "range": range(3), "storage": torch_like.ones(2).untyped_storage(),
        "buffer": torch_like.nn.Buffer(torch_like.ones(2)), "uint16": torch_like.ones(2).to(torch_like.uint16),
        "packed": torch_like.nn.utils.rnn.pack_sequence([torch_like.ones(2, 1)]),
    }  # fmt: skip


def _described(value: Any) -> Any:
    if isinstance(value, list):
        return [_described(item) for item in value]
    if isinstance(value, type):
        return value.__name__
    if hasattr(value, "numpy") and hasattr(value, "detach"):
        return str(value.dtype).rpartition(".")[2], value.detach().numpy().tolist(), getattr(value, "note", None)
    if hasattr(value, "last_epoch"):
        return type(value).__qualname__, value.last_epoch, value.get_last_lr()
    if hasattr(value, "state_dict"):
        return type(value).__qualname__, [*value.state_dict()]
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = str(value) if "object at" not in str(value) else type(value).__qualname__
    return text.replace("candelabra.", "torch.")


def objects() -> None:
    """Check that other objects come back, with protocols 2 and 4."""
    for protocol in (2, 4):
        theirs, mine = _objects(torch), _objects(candelabra)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in theirs:
                for save, load, value in (
                    (torch.save, loading.load, theirs[name]),
                    (saving.save, torch.load, mine[name]),
                ):
                    file = io.BytesIO()
                    save(value, file, pickle_protocol=protocol)
                    file.seek(0)
                    found = load(file, weights_only=False)
                    if name == "scheduler":
                        for scheduler in (found, value):
                            scheduler.optimizer.step()
                            scheduler.step()
                    if name == "storage":
                        assert found.nbytes() == 8, found
                    else:
                        assert str(_described(found)) == str(_described(value)), (name, found, value)
        print(f"other objects, protocol {protocol}: {len(theirs)} both ways")


def skipped() -> None:
    """Check that files with reserved space are read by the other library."""
    for save, load, value, module in (
        (torch.save, loading.load, torch.ones(3), torch),
        (saving.save, torch.load, candelabra.ones(3), candelabra),
    ):
        file = io.BytesIO()
        with module.serialization.skip_data():
            save(value, file)
        file.seek(0)
        assert load(file).tolist() == [0, 0, 0]
    print("skip_data: both ways")
