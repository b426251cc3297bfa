"""Test the parts of the Trainer: devices, gradients, checkpoints, logs, and docstring examples."""

from __future__ import annotations

import collections
import csv
import dataclasses
import doctest
import importlib
import math
import sys
import types
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from training_runs import make

import candelabra
from candelabra import nn
from candelabra.utils.trainer import (
    Checkpoints,
    CSVLog,
    Curves,
    Mean,
    ProgressBar,
    TensorBoard,
    choose_device,
    clip_gradients,
    to_device,
)

MODULES = [
    "callbacks",
    "checkpoints",
    "gradients",
    "metrics",
    "place",
    "placement",
    "precision",
    "randomness",
    "trainer",
]


@pytest.mark.host_only("the examples show devices and dtypes of the CPU")
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"candelabra.utils.trainer.{name}"))
    assert result.attempted > 0 and result.failed == 0


def test_to_device():
    Pair = collections.namedtuple("Pair", "a b")

    @dataclasses.dataclass
    class Sample:
        x: candelabra.Tensor
        name: str

    class Own:
        def to(self, device):
            return f"moved to {device}"

    x = candelabra.ones(2)
    moved = to_device(
        {"pair": Pair(x, [x, 3]), "ordered": collections.OrderedDict(k=x), "sample": Sample(x, "s"), "own": Own(), "none": None,
         "text": "t", "view": types.MappingProxyType({"k": x})}, "cpu",
    )  # fmt: skip
    assert isinstance(moved["pair"], Pair) and moved["pair"].b[1] == 3
    assert type(moved["ordered"]) is collections.OrderedDict
    assert moved["sample"].name == "s" and moved["sample"].x.device.type == "cpu"
    assert (moved["own"], moved["none"], moved["text"]) == ("moved to cpu", None, "t")
    assert moved["view"]["k"].tolist() == [1, 1]
    packed = nn.utils.rnn.pack_sequence([candelabra.ones(2, 1)])
    assert type(to_device(packed, "cpu")) is type(packed)


def test_choose_device():
    assert choose_device("cpu").type == "cpu"
    assert choose_device(candelabra.device("cpu")).type == "cpu"
    assert choose_device() == (candelabra.accelerator.current_accelerator() or candelabra.device("cpu"))


@pytest.mark.parametrize("norm_type", [1.0, 2.0, math.inf])
def test_clip_gradients(norm_type):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=size) for size in ((3, 4), (5,))]
    tensors = [candelabra.zeros(array.shape, dtype=candelabra.float64) for array in arrays]
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor.grad = candelabra.tensor(array)
    whole = np.concatenate([array.ravel() for array in arrays])
    norm = np.linalg.norm(whole, norm_type)
    found = clip_gradients([*tensors, candelabra.zeros(2)], norm=norm / 2, norm_type=norm_type)
    assert found.item() == pytest.approx(norm)
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), array / 2, rtol=1e-5)
    # A norm below the limit is not scaled up.
    clip_gradients(tensors, norm=norm)
    np.testing.assert_allclose(tensors[1].grad.numpy(), arrays[1] / 2, rtol=1e-5)
    clip_gradients(tensors, value=0.1)
    np.testing.assert_allclose(tensors[0].grad.numpy(), np.clip(arrays[0] / 2, -0.1, 0.1), rtol=1e-5)
    assert clip_gradients([candelabra.zeros(2)]).item() == 0
    with pytest.raises(ValueError, match="norm must be positive"):
        clip_gradients(tensors, norm=0.0)


def test_mean():
    mean = Mean()
    assert math.isnan(mean.value)
    for _ in range(1000):
        mean.add(0.1)
    mean.add(candelabra.tensor(1100.1), weight=2)
    assert mean.value == pytest.approx((1000 * 0.1 + 2 * 1100.1) / 1002, rel=1e-6)


def test_which_checkpoints_are_kept(tmp_path):
    def steps(checkpoints):
        return [int(path.name[5:13]) for path in checkpoints.paths()]

    values = [5.0, 3.0, 4.0, 1.0, 2.0, 6.0]
    checkpoints = Checkpoints(tmp_path / "a", keep_last=2, keep_best=2)
    for step, value in enumerate(values):
        checkpoints.save({}, step, value)
    assert steps(checkpoints) == [3, 4, 5]
    assert checkpoints.best() == checkpoints.path(3)
    assert checkpoints.latest() == checkpoints.path(5)
    checkpoints = Checkpoints(tmp_path / "b", keep_last=1, keep_best=1, mode="max")
    for step, value in enumerate([*values[:4], math.nan]):
        checkpoints.save({}, step, value)
    assert steps(checkpoints) == [0, 4]
    again = Checkpoints(tmp_path / "b", keep_last=1, keep_best=1, mode="max")
    assert again.best() is None
    again.load_state_dict(checkpoints.state_dict())
    assert again.best() == checkpoints.path(0)
    checkpoints = Checkpoints(tmp_path / "c", keep_last=None)
    for step in range(4):
        checkpoints.save({}, step)
    assert steps(checkpoints) == [0, 1, 2, 3]
    assert checkpoints.best() is None
    assert Checkpoints(tmp_path / "none").latest() is None
    for options in ({"every_steps": 0}, {"keep_last": 0}, {"keep_best": -1}, {"mode": "up"}):
        with pytest.raises(ValueError, match="Checkpoints"):
            Checkpoints(tmp_path, **options)


def test_checkpoints_of_a_run(tmp_path):
    trainer, loader = make(checkpoints=Checkpoints(tmp_path, every_epochs=2, keep_last=None))
    trainer.fit(loader, epochs=5)
    # After the second and the fourth epoch, and at the end.
    assert [path.name for path in trainer.checkpoints.paths()] == [
        f"step-{step:08d}.candelabra" for step in (8, 16, 20)
    ]
    trainer, loader = make(checkpoints=str(tmp_path / "folder"))
    told = []

    class Told:
        def on_checkpoint(self, trainer, path):
            told.append(path.name)

    trainer.callbacks.append(Told())
    trainer.fit(loader, loader, epochs=2)
    assert told == ["step-00000004.candelabra", "step-00000008.candelabra"]
    best = make(checkpoints=Checkpoints(tmp_path / "best", keep_best=1))[0]
    best.fit(loader, loader, epochs=3)
    state = candelabra.load(best.checkpoints.best())
    assert state["evaluated"]["eval_loss"] == min(line["eval_loss"] for line in best.history)


def test_table(tmp_path):
    path = tmp_path / "deep" / "log.csv"
    trainer, loader = make(callbacks=[CSVLog(path, every=2)])
    history = trainer.fit(loader, loader, epochs=2)
    rows = list(csv.DictReader(path.open()))
    assert [row["step"] for row in rows] == ["2", "4", "4", "4", "6", "8", "8", "8"]
    assert float(rows[2]["eval_loss"]) == history[0]["eval_loss"]
    assert float(rows[-1]["train_loss"]) == history[1]["train_loss"]
    assert rows[0]["eval_loss"] == ""
    assert float(rows[0]["grad_norm"]) > 0
    trainer, loader = make(callbacks=[CSVLog(path)])
    trainer.fit(loader, steps=1)
    assert len(list(csv.DictReader(path.open()))) == 1


def test_curves(tmp_path):
    pytest.importorskip("matplotlib")
    curves = Curves(tmp_path / "curves.png", every=2)
    trainer, loader = make(callbacks=[curves], metrics={"error": lambda output, target: (output - target).abs().mean()})
    history = trainer.fit(loader, loader, epochs=2)
    assert (tmp_path / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [step for step, _ in curves.points["train_loss"]] == [2, 4, 6, 8]
    assert curves.points["eval_error"] == [(4, history[0]["eval_error"]), (8, history[1]["eval_error"])]
    again = Curves(tmp_path / "again.png")
    again.load_state_dict(curves.state_dict())
    assert again.points == curves.points


def test_progress_bar(capsys):
    pytest.importorskip("tqdm")
    trainer, loader = make(callbacks=[ProgressBar(ncols=80, mininterval=0)])
    trainer.fit(loader, epochs=2)
    shown = capsys.readouterr()
    assert "8/8" in shown.err
    assert "epoch 1: train_loss" in shown.out + shown.err
    trainer, _ = make(progress_bar={"desc": "mine"})
    trainer.fit([next(iter(loader))], steps=1)
    assert "mine" in capsys.readouterr().err


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def scalars(tag):
        events = EventAccumulator(str(tmp_path / "log")).Reload()
        return [(one.step, one.value) for one in events.Scalars(tag)]

    def run(steps):
        trainer, loader = make(tmp_path, callbacks=[TensorBoard(tmp_path / "log")])
        return trainer.fit(loader, loader, steps=steps, resume=True)

    run(6)
    for path in (tmp_path / "log").iterdir():
        # Files are read in the order of their names. Within one second, names are not in order of
        # time.
        path.rename(tmp_path / "log" / "events.out.tfevents.0")
    for path in Checkpoints(tmp_path).paths():
        if path.name != "step-00000005.candelabra":
            path.unlink()
    history = run(8)
    assert [step for step, _ in scalars("train/loss")] == list(range(1, 9))
    np.testing.assert_allclose(
        [value for _, value in scalars("eval/loss")], [line["eval_loss"] for line in history], rtol=1e-6
    )
