"""Test the range test of learning rates, and the log for W&B."""

import sys
import types

import pytest

import candelabra as c
from candelabra import nn, optim
from candelabra.utils.data import DataLoader, TensorDataset
from candelabra.utils.trainer import LearningRates, Trainer, WandB, find_learning_rate


def loader():
    x = c.linspace(-1, 1, 64)[:, None]
    return DataLoader(TensorDataset(x, 10 * x - 5), batch_size=16, shuffle=True)


def trainer_of(make=optim.SGD, **options):
    c.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    optimizer = make(model.parameters(), lr=0.01)
    return Trainer(model, optimizer, nn.functional.mse_loss, device="cpu", progress_bar=False, **options)


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_a_rate_is_found_and_everything_is_as_before(make):
    trainer = trainer_of(make)
    state = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    c.manual_seed(5)
    expected = c.rand(2)
    c.manual_seed(5)
    found = find_learning_rate(trainer, loader())
    assert c.equal(c.rand(2), expected)
    assert 1e-4 < found.suggestion < 5
    assert found.rates == sorted(found.rates)
    assert len(found.rates) == len(found.losses)
    assert trainer.optimizer.param_groups[0]["lr"] == 0.01
    assert not trainer.optimizer.state_dict()["state"]
    assert all(c.equal(value, state[name]) for name, value in trainer.model.state_dict().items())
    assert trainer.model.training
    assert all(parameter.grad is None for parameter in trainer.model.parameters())


def test_it_ends_where_the_loss_diverges():
    found = find_learning_rate(trainer_of(), loader(), start=1e-3, end=1e6)
    assert len(found.rates) < 100
    assert repr(found).startswith(f"LearningRates({len(found.rates)} steps from 0.001 to ")


def test_what_makes_no_range_is_refused():
    trainer = trainer_of()
    with pytest.raises(ValueError, match="0 < start < end"):
        find_learning_rate(trainer, loader(), start=1.0, end=0.1)
    with pytest.raises(ValueError, match="at least 10 steps"):
        find_learning_rate(trainer, loader(), steps=3)
    with pytest.raises(RuntimeError, match="no batches"):
        find_learning_rate(trainer, [])
    trainer.is_fitting = True
    with pytest.raises(RuntimeError, match="is fitting"):
        find_learning_rate(trainer, loader())


def test_a_range_in_which_nothing_is_learnt_has_no_suggestion():
    found = LearningRates([10.0**step for step in range(12)], [float(step) for step in range(12)])
    with pytest.raises(RuntimeError, match="the loss does not fall"):
        _ = found.suggestion


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    find_learning_rate(trainer_of(), loader()).draw(tmp_path / "pictures" / "rates.png")
    assert (tmp_path / "pictures" / "rates.png").stat().st_size > 1000


class Run:
    def __init__(self, identity="abc"):
        self.id, self.rows, self.finished = identity, [], False

    def log(self, values, step=None):
        self.rows.append((step, values))

    def finish(self):
        self.finished = True


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("somebodys_log")
    module.started = []

    def init(**options):
        module.started.append((options, Run(options.get("id", "abc"))))
        return module.started[-1][1]

    module.init = init
    monkeypatch.setitem(sys.modules, "somebodys_log", module)
    return module


def test_steps_and_evaluations_are_logged(library):
    log = WandB(library="somebodys_log", project="digits")
    trainer_of(callbacks=[log]).fit(loader(), loader(), epochs=1)
    ((options, run),) = library.started
    assert options == {"project": "digits"}
    assert run.finished
    assert [step for step, _ in run.rows] == [1, 2, 3, 4, 4]
    assert {"train/loss", "train/lr", "epoch"} <= set(run.rows[0][1])
    assert set(run.rows[-1][1]) == {"eval/loss", "epoch"}


def test_a_resumed_training_goes_on_with_its_run(library, tmp_path):
    log = WandB(library="somebodys_log")
    trainer_of(callbacks=[log], checkpoints=tmp_path).fit(loader(), epochs=1)
    again = WandB(library="somebodys_log")
    trainer_of(callbacks=[again], checkpoints=tmp_path).fit(loader(), epochs=2, resume=True)
    assert library.started[1][0] == {"id": "abc", "resume": "allow"}
    assert library.started[1][1].rows[0][0] == 5


def test_a_run_that_exists_is_not_finished():
    run = Run()
    trainer_of(callbacks=[WandB(run, every=2)]).fit(loader(), epochs=1)
    assert [step for step, _ in run.rows] == [2, 4]
    assert not run.finished


def test_a_missing_library_is_said_before_training():
    with pytest.raises(ImportError, match="WandB needs no_such_log .*pip install no_such_log"):
        trainer_of(callbacks=[WandB(library="no_such_log")]).fit(loader(), epochs=1)
