"""Test that the Trainer matches a hand-written loop and reports errors."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from training_runs import LOADERS, make, plain, weights

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F
from candelabra.utils import Trainer
from candelabra.utils.data import DataLoader, DistributedSampler, TensorDataset
from candelabra.utils.trainer import HOOKS, Callback, Checkpoints, EarlyStopping, accuracy


def net(seed=1):
    candelabra.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))


def quiet(model, optimizer=None, loss=F.mse_loss, **options):
    optimizer = optimizer or optim.SGD(model.parameters(), lr=0.1)
    return Trainer(model, optimizer, loss, **{"progress_bar": False, **options})


def test_is_the_loop_by_hand():
    loader = DataLoader(plain(), 4, shuffle=True)
    by_hand = net()
    optimizer = optim.Adam(by_hand.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(2):
        for inputs, target in loader:
            loss = F.mse_loss(by_hand(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(by_hand.parameters(), 0.5)
            optimizer.step()
        scheduler.step()

    model = net()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    trainer = quiet(model, optimizer, scheduler=optim.lr_scheduler.ExponentialLR(optimizer, 0.5), clip_norm=0.5)
    trainer.fit(loader, epochs=2)
    for ours, theirs in zip(model.parameters(), by_hand.parameters(), strict=True):
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    assert optimizer.param_groups[0]["lr"] == 0.0025


def test_accumulation_is_a_larger_batch():
    x, y = candelabra.randn(10, 3), candelabra.randn(10)

    def trained(size, accumulate):
        model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
        for parameter in model.parameters():
            nn.init.constant_(parameter, 0.25)
        quiet(model, accumulate=accumulate).fit(DataLoader(TensorDataset(x, y), size), epochs=3)
        return np.concatenate([parameter.detach().numpy().ravel() for parameter in model.parameters()])

    # Five batches of two: steps of four samples, four, and the remaining two.
    np.testing.assert_allclose(trained(2, 2), trained(4, 1), rtol=1e-6)
    np.testing.assert_allclose(trained(1, 10), trained(10, 1), rtol=1e-6)


def test_where_it_ends():
    trainer, loader = make()
    assert [line["epoch"] for line in trainer.fit(loader, epochs=2)] == [1.0, 2.0]
    assert (trainer.progress.epoch, trainer.progress.step, trainer.progress.batches) == (2, 8, 20)
    trainer, loader = make()
    trainer.fit(loader, epochs=5, steps=6)
    assert (trainer.progress.epoch, trainer.progress.step) == (1, 6)
    trainer.fit(loader, steps=8)
    assert (trainer.progress.epoch, trainer.progress.step, len(trainer.history)) == (2, 8, 2)
    with pytest.raises(ValueError, match="epochs= or steps="):
        trainer.fit(loader)
    with pytest.raises(ValueError, match="needs an eval_loader"):
        trainer.fit(loader, epochs=1, eval_every=2)


def test_loaders_without_batches():
    trainer, _ = make()
    with pytest.raises(RuntimeError, match="no batches in epoch 1"):
        trainer.fit([], epochs=1)
    trainer, loader = make()
    with pytest.raises(RuntimeError, match="no batches in epoch 2; .* each time"):
        trainer.fit(iter(list(loader)), epochs=2)
    with pytest.raises(RuntimeError, match="no batches"):
        trainer.evaluate([])
    with pytest.raises(RuntimeError, match="no batches"):
        trainer.predict([])


def test_evaluate():
    model = net()
    x, y = plain().tensors
    model.eval()
    expected = F.mse_loss(model(x), y).item()
    model.train()
    model[1].eval()  # a part in evaluation mode stays so
    trainer = quiet(model, metrics={"error": lambda output, target: (output - target).abs().mean()})
    values = trainer.evaluate(DataLoader(plain(), 7))  # the last batch is smaller and weighs less
    assert values["eval_loss"] == pytest.approx(expected, rel=1e-5)
    model.eval()
    assert values["eval_error"] == pytest.approx((model(x) - y).abs().mean().item(), rel=1e-5)
    model.train()
    model[1].eval()
    trainer.evaluate(DataLoader(plain(), 7))
    assert [module.training for module in model] == [True, False, True, True, True]
    assert model(x).requires_grad


def test_metrics():
    class Largest:
        def reset(self):
            self.value = -math.inf

        def update(self, output, target):
            self.value = max(self.value, output.max().item())

        def compute(self):
            return self.value

    model = nn.Linear(2, 3)
    trainer = quiet(model, loss=F.cross_entropy, metrics=[accuracy, Largest()])
    x, y = candelabra.randn(20, 2), candelabra.randint(3, (20,))
    values = trainer.evaluate(DataLoader(TensorDataset(x, y), 6))
    scores = model(x).detach().numpy()
    assert values["eval_accuracy"] == pytest.approx((scores.argmax(1) == y.numpy()).mean())
    assert values["eval_Largest"] == pytest.approx(scores.max())
    with pytest.raises(TypeError, match="metric 'x'"):
        quiet(model, metrics={"x": 3})


def test_accuracy():
    assert accuracy(candelabra.tensor([1.0, -1.0, 2.0, -2.0]), candelabra.tensor([1, 0, 0, 0])) == 0.75
    assert accuracy(candelabra.tensor([[1.0], [-1.0]]), candelabra.tensor([1.0, 0.0])) == 1.0
    pixels = candelabra.zeros(2, 3, 4, 4)
    pixels[:, 1] = 1
    assert accuracy(pixels, candelabra.ones(2, 4, 4, dtype=candelabra.int64)) == 1.0
    assert math.isnan(accuracy(candelabra.zeros(0, 3), candelabra.zeros(0, dtype=candelabra.int64)))


def test_predict():
    model = net().eval()
    x, _ = plain().tensors
    expected = model(x).detach().numpy()
    trainer = quiet(model)
    for loader in (DataLoader(plain(), 7), DataLoader(TensorDataset(x), 7), [x[:5], x[5:]]):
        np.testing.assert_allclose(trainer.predict(loader).numpy(), expected, rtol=1e-5, atol=1e-6)
    pair = trainer.predict([x[:5], x[5:]], step=lambda model, batch: {"twice": (2 * model(batch), batch[0].sum())})
    np.testing.assert_allclose(pair["twice"][0].numpy(), 2 * expected, rtol=1e-5, atol=1e-6)
    assert pair["twice"][1].shape == (2,)


def test_batches_of_all_kinds():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(candelabra.ones(()))

        def forward(self, a, b):
            return self.weight * a + b

    a, b = candelabra.ones(4), candelabra.zeros(4)
    for inputs in ((a, b), [a, b], {"b": b, "a": a}):
        trainer = quiet(Two())
        trainer.fit([(inputs, 3 * a)], epochs=1)
        # The gradient of (w - 3)**2 at 1 is -4.
        assert trainer.model.weight.item() == pytest.approx(1.4)

    def step(model, batch):
        loss = F.mse_loss(model(batch["a"], batch["more"][0]), batch["goal"])
        return {"loss": loss, "twice": 2 * loss}

    trainer = Trainer(model := Two(), optim.SGD(model.parameters(), lr=0.1), step=step, progress_bar=False)
    history = trainer.fit([{"a": a, "more": (b,), "goal": 3 * a}], epochs=1)
    assert (history[0]["train_loss"], history[0]["train_twice"]) == (4.0, 8.0)
    for batch, message in (((a,), "pair of inputs and target .* got tuple of 1"), (a, "got Tensor")):
        with pytest.raises(TypeError, match=message):
            quiet(Two()).fit([batch], epochs=1)
    trainer = Trainer(model, optim.SGD(model.parameters()), step=lambda model, batch: 3.0, progress_bar=False)
    with pytest.raises(TypeError, match="returns the loss as a tensor"):
        trainer.fit([a], epochs=1)
    trainer = Trainer(
        model, optim.SGD(model.parameters()), step=lambda *_: model.weight * 1, metrics=[accuracy], progress_bar=False
    )
    with pytest.raises(KeyError, match="'output' and 'target'"):
        trainer.evaluate([a])


def test_callbacks_are_called_in_order():
    calls = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __getattribute__(self, attribute):
            if attribute in HOOKS:
                return lambda trainer, *arguments: calls.append((self.name, attribute))
            return object.__getattribute__(self, attribute)

        def __dir__(self):
            return list(HOOKS)

    trainer, loader = make(callbacks=[Note("a"), Note("b")], accumulate=5)
    trainer.fit(loader, [next(iter(loader))], epochs=1)
    assert calls[::2] == [("a", name) for _, name in calls[::2]]
    assert calls[1::2] == [("b", name) for _, name in calls[::2]]
    batch, step = ["on_batch_start", "on_batch_end"], ["on_before_step", "on_step_end"]
    evaluation = ["on_evaluate_start", "on_evaluate_end"]
    expected = ["on_fit_start", "on_epoch_start", *(5 * batch + step) * 2, *evaluation, "on_epoch_end", "on_fit_end"]
    assert [name for _, name in calls[::2]] == expected

    calls.clear()
    trainer.evaluate(loader)
    assert not calls

    def fails(model, batch):
        raise KeyError("mine")

    trainer = Trainer(net(), trainer.optimizer, step=fails, callbacks=[Note("a")], progress_bar=False)
    with pytest.raises(KeyError, match="mine"):
        trainer.fit(loader, epochs=1)
    assert [name for _, name in calls] == [
        "on_fit_start",
        "on_epoch_start",
        "on_batch_start",
        "on_exception",
        "on_fit_end",
    ]


def test_objects_that_are_no_callbacks():
    class Typo:
        def on_epoch_ended(self, trainer):
            pass

    class Own(Callback):
        pass

    for wrong, message in (
        (Typo(), "on_epoch_ended, which is never called"),
        (Own, "the class Own"),
        (object(), "no method that is"),
    ):
        with pytest.raises(TypeError, match=message):
            make(callbacks=[wrong])
    trainer, loader = make(callbacks=[Own()])
    trainer.fit(loader, loader, epochs=1)
    assert all(hasattr(Callback, name) for name in HOOKS)


def test_early_stopping():
    trainer, loader = make(callbacks=[EarlyStopping(patience=2, min_delta=1e9)])
    trainer.fit(loader, loader, epochs=20)
    assert (trainer.progress.epoch, trainer.stopped) == (3, "eval_loss was not better for 2 evaluations")
    trainer, loader = make(callbacks=[EarlyStopping("accuracy")])
    with pytest.raises(KeyError, match="no 'accuracy', only eval_loss"):
        trainer.fit(loader, loader, epochs=1)
    rising, stopping = iter([1.0, 2.0, 3.0, 2.9, math.nan]), EarlyStopping("value", patience=2, mode="max")

    class Trainers:
        stopped = None

        def stop(self, reason):
            self.stopped = reason

    for moment, value in enumerate(rising):
        trainer = Trainers()
        stopping.on_evaluate_end(trainer, {"value": value})
        assert (trainer.stopped is not None) == (moment == 4)
    with pytest.raises(ValueError, match="mode"):
        EarlyStopping(mode="up")
    with pytest.raises(ValueError, match="patience"):
        EarlyStopping(patience=0)


def test_a_loss_that_is_no_number(tmp_path):
    data = list(LOADERS["list"]())
    data[4][0][0, 0] = math.nan
    trainer, _ = make(tmp_path, accumulate=1)
    with pytest.raises(FloatingPointError, match="loss of batch 5, in epoch 1 after step 4, is nan"):
        trainer.fit(data, epochs=1)
    assert all(math.isfinite(number) for number in weights(trainer)[:33])
    assert candelabra.load(Checkpoints(tmp_path).latest())["progress"]["step"] == 4
    trainer, _ = make(accumulate=1, on_nan="skip")
    trainer.fit(data, epochs=1)
    assert (trainer.progress.skipped, trainer.progress.batches, trainer.progress.step) == (1, 10, 9)
    assert math.isfinite(trainer.history[0]["train_loss"])
    trainer, _ = make(accumulate=1, on_nan="ignore", clip_norm=None)
    trainer.fit(data, epochs=1)
    assert math.isnan(trainer.history[0]["train_loss"])


def test_parameters_that_are_no_numbers_are_not_saved(tmp_path):
    class Destroy:
        def on_step_end(self, trainer, values):
            if trainer.progress.step == 3:
                with candelabra.no_grad():
                    trainer.model[0].weight[0, 0] = math.inf

    trainer, loader = make(tmp_path, callbacks=[Destroy()], keep_last=1)
    with pytest.raises(FloatingPointError, match=r"after step 3 parameter 0.weight is not finite"):
        trainer.fit(loader, epochs=1)
    assert [path.name for path in Checkpoints(tmp_path).paths()] == [
        "step-00000001.candelabra",
        "step-00000002.candelabra",
    ][-1:]


def test_schedules():
    trainer, loader = make()
    optimizer = trainer.optimizer
    seen = []

    class Rates:
        def on_step_end(self, trainer, values):
            seen.append(values["lr"])

    trainer = quiet(
        trainer.model,
        optimizer,
        scheduler=optim.lr_scheduler.StepLR(optimizer, 2),
        schedule_by="step",
        callbacks=[Rates()],
    )
    trainer.fit(loader, steps=5)
    np.testing.assert_allclose(seen, [0.02, 0.02, 0.002, 0.002, 0.0002])
    optimizer.param_groups[0]["lr"] = 1e-3
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1e9, threshold_mode="abs")
    trainer = quiet(trainer.model, optimizer, scheduler=plateau)
    history = trainer.fit(loader, loader, epochs=3)
    np.testing.assert_allclose([line["lr"] for line in history], [1e-3, 1e-3, 1e-4])
    assert plateau.best == pytest.approx(history[0]["eval_loss"])


def test_mixed_precision():
    dtypes = []

    class Look(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            dtypes.append(y.dtype)
            return y

    for precision, expected in (
        ("bf16", candelabra.bfloat16),
        (candelabra.float16, candelabra.float16),
        (None, candelabra.float32),
    ):
        model = Look(3, 1)
        trainer = Trainer(
            model, optim.SGD(model.parameters(), lr=0.1), step=lambda model, batch: F.mse_loss(model(batch[0])[:, 0].float(), batch[1]),
            precision=precision, progress_bar=False,
        )  # fmt: skip
        history = trainer.fit(DataLoader(plain(), 10), epochs=4)
        assert history[-1]["train_loss"] < history[0]["train_loss"]
        assert set(dtypes) == {expected}
        assert model.weight.dtype == candelabra.float32
        dtypes.clear()


def test_scaled_gradients_that_overflow_are_left_out():
    model = nn.Linear(1, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = candelabra.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1000)
    trainer = quiet(model, optimizer, precision="float16", scaler=scaler, scheduler=scheduler, schedule_by="step")
    before = model.weight.item()
    trainer.fit([(candelabra.full((2, 1), 3.0), candelabra.full((2, 1), -9.0))], steps=1)
    assert model.weight.item() == before
    assert (scaler.get_scale(), scheduler.last_epoch) == (2.0**126, 0)


def test_device_and_options_that_mean_nothing():
    model = nn.Linear(1, 1)
    optimizer = optim.SGD(model.parameters())
    assert quiet(model).device == candelabra.device("cpu") or candelabra.accelerator.is_available()
    for options, message in (
        ({"schedule_by": "day"}, "schedule_by"),
        ({"on_nan": "cry"}, "on_nan"),
        ({"accumulate": 0}, "accumulate"),
        ({"clip_norm": -1.0}, "clip_norm"),
        ({"clip_value": 0.0}, "clip_value"),
        ({"precision": "int8"}, "precision"),
        ({"precision": candelabra.int8}, "precision"),
        ({"seed": -1}, "seed is from 0"),
    ):
        with pytest.raises(ValueError, match=message):
            quiet(model, optimizer, **options).fit([(candelabra.ones(1, 1), candelabra.ones(1, 1))], epochs=1)
    for arguments in ((None,), (F.mse_loss,)):
        with pytest.raises(TypeError, match="loss=.*step="):
            Trainer(model, optimizer, *arguments, step=None if arguments[0] is None else len, progress_bar=False)
    with pytest.raises(TypeError, match="LBFGS.*closure"):
        quiet(model, optim.LBFGS(model.parameters()))


def test_seed_and_determinism():
    def run():
        trainer = quiet(net(), seed=4, deterministic=True)
        seen = []

        class Look:
            def on_step_end(self, trainer, values):
                seen.append((candelabra.are_deterministic_algorithms_enabled(), values["loss"]))

        trainer.callbacks.append(Look())
        trainer.fit(DataLoader(plain(), 4, shuffle=True), epochs=1)
        return seen

    first = run()
    assert first == run()
    assert all(deterministic for deterministic, _ in first)
    assert not candelabra.are_deterministic_algorithms_enabled()


def test_profiler():
    class Profiler:
        steps = entered = left = 0

        def __enter__(self):
            self.entered += 1

        def __exit__(self, *error):
            self.left += 1

        def step(self):
            self.steps += 1

    trainer, loader = make(profiler=(profiler := Profiler()))
    trainer.fit(loader, epochs=1)
    assert (profiler.entered, profiler.steps, profiler.left) == (1, 4, 1)
    trainer, loader = make(profiler=(profile := candelabra.profiler.profile()))
    trainer.fit(loader, epochs=1)
    assert "linear" in profile.key_averages().table()


def test_sampler_is_told_the_epoch():
    told = []

    class Told(DistributedSampler):
        def set_epoch(self, epoch):
            told.append(epoch)
            super().set_epoch(epoch)

    data = plain()
    trainer, _ = make()
    trainer.fit(DataLoader(data, 4, sampler=Told(data, 2, 0)), epochs=3)
    assert told == [0, 1, 2]


def test_needs_only_what_it_uses(tmp_path):
    """The Trainer needs no optional package, and accepts objects with the methods of modules and
    optimizers.
    """
    program = tmp_path / "own.py"
    program.write_text(
        "import sys\n"
        "for name in ('tqdm', 'matplotlib', 'tensorboard', 'candelabra.nn', 'candelabra.optim', 'candelabra.autograd'):\n"
        "    sys.modules[name] = None\n"
        "import candelabra\n"
        "from candelabra.utils import Trainer\n"
        "from candelabra.utils.trainer import CSVLog, Curves, ProgressBar, TensorBoard\n"
        "class Model:\n"
        "    training = True\n"
        "    def to(self, device): return self\n"
        "    def modules(self): return [self]\n"
        "    def train(self): self.training = True\n"
        "    def eval(self): self.training = False\n"
        "    def __call__(self, x): return x\n"
        "class Optimizer:\n"
        "    param_groups = [{'params': [], 'lr': 1.0}]\n"
        "    def step(self): pass\n"
        "    def zero_grad(self): pass\n"
        "class Loss(candelabra.Tensor):\n"
        "    def backward(self): pass\n"
        "def step(model, batch): return model(batch).as_subclass(Loss)\n"
        "trainer = Trainer(Model(), Optimizer(), step=lambda model, batch: model(batch).as_subclass(Loss))\n"
        "import unittest.mock\n"
        "with unittest.mock.patch.object(trainer.precision, 'backward'):\n"
        "    print(trainer.fit([candelabra.tensor(2.0)], epochs=1))\n"
        "for callback in (ProgressBar(), Curves('x.png'), TensorBoard('x')):\n"
        "    try:\n"
        "        Trainer(Model(), Optimizer(), step=step, callbacks=[callback]).fit([candelabra.tensor(2.0)], epochs=1)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "'train_loss': 2.0" in lines[0]
    assert "pip install tqdm" in lines[1]
    assert "pip install matplotlib" in lines[2]
    assert "pip install tensorboard" in lines[3]
