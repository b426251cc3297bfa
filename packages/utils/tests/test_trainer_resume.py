"""Test that a stopped or killed run resumes to bitwise the same weights."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import training_runs
from training_runs import EPOCHS, LOADERS, make, weights

import candelabra
from candelabra.utils.data import DataLoader
from candelabra.utils.trainer import Checkpoints, EarlyStopping, Place, random_states, set_random_states

PROGRAM = Path(training_runs.__file__)
#: How often a run is killed; `nox -s kills` kills 100 times.
KILLS = int(os.environ.get("CANDELABRA_TRAINER_KILLS", "3"))
FORKED = pytest.mark.host_only("worker processes are forked, which the runtime of a device does not survive")
ELSEWHERE = pytest.mark.host_only(
    "a process of its own, which computes on the CPU, is stopped and compared with this one"
)


def whole_run(kind, **options):
    trainer, loader = make(kind=kind, **options)
    trainer.fit(loader, epochs=EPOCHS)
    return trainer


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=FORKED if kind in ("workers", "persistent") else ()) for kind in LOADERS]
)
def test_resume_at_any_step(tmp_path, kind):
    expected = whole_run(kind)
    # 4 steps per epoch: within one, after its last full step, after the step of the remaining
    # batch, and in later epochs.
    for step in (1, 3, 4, 6, 8, 11):
        first, loader = make(tmp_path / str(step), kind)
        first.fit(loader, steps=step)
        assert first.progress.step == step
        random.seed(99)
        candelabra.manual_seed(98)
        second, loader = make(tmp_path / str(step), kind)
        candelabra.randn(7)  # earlier draws do not matter
        history = second.fit(loader, epochs=EPOCHS, resume=True)
        assert weights(second) == weights(expected), step
        assert history == expected.history
        assert second.progress == expected.progress


def test_resume_many_times(tmp_path):
    expected = whole_run("noisy")
    for step in range(1, 13):
        trainer, loader = make(tmp_path, "noisy")
        trainer.fit(loader, steps=step, resume=True)
    trainer.fit(loader, epochs=EPOCHS)
    assert weights(trainer) == weights(expected)
    assert trainer.history == expected.history


def test_going_on_in_the_same_process():
    expected = whole_run("tensors")
    trainer, loader = make()
    for step in (2, 3, 7, 8):
        trainer.fit(loader, steps=step)
    trainer.fit(loader, epochs=EPOCHS)
    assert weights(trainer) == weights(expected)
    before = weights(trainer)
    trainer.fit(loader, epochs=EPOCHS)
    assert weights(trainer) == before


@FORKED
def test_resume_with_another_number_of_workers(tmp_path):
    expected = whole_run("workers")
    trainer, loader = make(tmp_path, "workers")
    trainer.fit(loader, steps=6)
    trainer, _ = make(tmp_path, "workers")
    trainer.fit(DataLoader(training_runs.Noisy(), 4, shuffle=True, seed_each_batch=True), epochs=EPOCHS, resume=True)
    assert weights(trainer) == weights(expected)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_resume_in_mixed_precision(tmp_path, precision):
    expected = whole_run("tensors", precision=precision)
    trainer, loader = make(tmp_path, precision=precision)
    trainer.fit(loader, steps=5)
    trainer, loader = make(tmp_path, precision=precision)
    trainer.fit(loader, epochs=EPOCHS, resume=True)
    assert weights(trainer) == weights(expected)
    assert trainer.precision.state_dict() == expected.precision.state_dict()
    assert bool(trainer.precision.state_dict()) == (precision == "float16")


def test_evaluating_changes_nothing():
    expected = whole_run("noisy")
    trainer, loader = make(kind="noisy")
    trainer.fit(loader, DataLoader(training_runs.Noisy(), 5, shuffle=True), epochs=EPOCHS, eval_every=1)
    assert weights(trainer) == weights(expected)


def test_state_of_early_stopping_is_kept(tmp_path):
    evaluation = list(DataLoader(training_runs.plain(), 10))

    def run(steps):
        stopping = EarlyStopping(patience=4, min_delta=100.0)
        trainer, loader = make(tmp_path, callbacks=[stopping])
        trainer.fit(loader, evaluation, steps=steps, eval_every=1, resume=True)
        return trainer, stopping

    _, stopping = run(3)
    assert stopping.waited == 2
    trainer, stopping = run(50)
    assert (trainer.progress.step, stopping.waited) == (5, 4)
    assert trainer.stopped == "eval_loss was not better for 4 evaluations"


def start(folder, kind):
    # With default settings, but without the choices of library that this machine has stored.
    path = os.pathsep.join([str(PROGRAM.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"CANDELABRA_CACHE_DIR": str(folder.parent / "cache"), "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, str(PROGRAM), str(folder), kind], env=env, stderr=subprocess.PIPE)


def finish(process):
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()


def run_with_kills(folder, kind, kills, chance):
    """Run to the end, with at most so many kills; return how many there were."""
    done = 0
    while not (folder / "done.candelabra").exists():
        process = start(folder, kind)
        # Wait until it trains. Then kill it at a random moment, while it computes, evaluates or
        # writes.
        seen = newest(folder)
        deadline = time.monotonic() + 120
        while process.poll() is None and newest(folder) == seen and time.monotonic() < deadline:
            time.sleep(0.005)
        if done < kills and process.poll() is None:
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.communicate()
            done += 1
            for path in Checkpoints(folder).paths():
                assert candelabra.load(path)["format"] == "candelabra.trainer"
        else:
            finish(process)
    return done


@ELSEWHERE
@pytest.mark.parametrize("kind", ["noisy", "workers"])
def test_killed_again_and_again(tmp_path, kind):
    whole = tmp_path / "whole"
    whole.mkdir()
    finish(start(whole, kind))
    chance = random.Random(3)
    killed = 0
    while killed < KILLS:
        parts = tmp_path / f"parts{killed}"
        parts.mkdir()
        kills = run_with_kills(parts, kind, min(KILLS - killed, 8), chance)
        assert kills >= 1
        killed += kills
        assert candelabra.load(parts / "done.candelabra") == candelabra.load(whole / "done.candelabra")
        assert (parts / "log.csv").read_text() == (whole / "log.csv").read_text()
        assert not list(parts.glob("*.part"))


def newest(folder):
    return Checkpoints(folder).latest()


SAVER = """
import sys, candelabra
from candelabra.utils.trainer import Checkpoints
checkpoints = Checkpoints(sys.argv[1], keep_last=1)
step = int(checkpoints.latest().name[5:13]) if checkpoints.latest() else 0
while True:
    step += 1
    checkpoints.save({"step": step, "weight": candelabra.full((200_000,), float(step))}, step)
    print(step, flush=True)
"""


@ELSEWHERE
def test_killed_while_it_saves(tmp_path):
    chance = random.Random(4)
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", SAVER, str(tmp_path)], stdout=subprocess.PIPE)
        told = int(process.stdout.readline())
        time.sleep(chance.random() * 0.03)
        process.kill()
        told = max([told, *map(int, process.stdout.read().split())])
        process.wait()
        found = candelabra.load(Checkpoints(tmp_path).latest())
        assert found["step"] >= told
        np.testing.assert_array_equal(found["weight"].numpy(), np.full(200_000, float(found["step"]), np.float32))
    checkpoints = Checkpoints(tmp_path)
    checkpoints.remove_remnants()
    assert len(list(tmp_path.iterdir())) == len(checkpoints.paths()) <= 2


class Interrupt:
    """Sends a signal to this process in the middle of a step."""

    def __init__(self, step, number):
        self.step, self.number = step, number

    def on_batch_start(self, trainer, batch):
        if trainer.progress.step == self.step and self.number is not None:
            number, self.number = self.number, None
            os.kill(os.getpid(), number)


@ELSEWHERE
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path, number):
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    expected = whole_run("tensors")
    trainer, loader = make(tmp_path, every=100, callbacks=[Interrupt(5, number)])
    trainer.fit(loader, epochs=EPOCHS)
    assert trainer.stopped == signal.Signals(number).name
    assert trainer.progress.step == 6
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
    trainer, loader = make(tmp_path)
    trainer.fit(loader, epochs=EPOCHS, resume=True)
    assert trainer.stopped is None
    assert weights(trainer) == weights(expected)


@ELSEWHERE
def test_interrupted_twice(tmp_path):
    class Twice:
        def on_batch_start(self, trainer, batch):
            os.kill(os.getpid(), signal.SIGINT)

    trainer, loader = make(tmp_path, callbacks=[Twice()])
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(loader, epochs=1)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


@ELSEWHERE
def test_ctrl_c_leaves_no_process(tmp_path):
    process = start(tmp_path, "workers")
    while newest(tmp_path) is None and process.poll() is None:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    finish(process)
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_another_thread_has_no_signals():
    expected = whole_run("tensors")
    trainer, loader = make()
    errors = []

    def train():
        try:
            trainer.fit(loader, epochs=EPOCHS)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert not errors
    assert weights(trainer) == weights(expected)


def test_max_time(tmp_path):
    expected = whole_run("tensors")
    trainer, loader = make(tmp_path, max_time=1e-9)
    while trainer.progress.epoch < EPOCHS:
        trainer.fit(loader, epochs=EPOCHS)
        # Each job makes at least one step. Otherwise, short jobs would never finish.
        assert trainer.stopped == "max_time" or trainer.progress.epoch == EPOCHS
    assert weights(trainer) == weights(expected)


def test_place_of_a_loader_that_is_too_short():
    place = Place([1, 2, 3])
    batches = iter(place)
    next(batches), next(batches)
    other = Place([1])
    other.load_state_dict(place.state_dict())
    with pytest.raises(RuntimeError, match="2 batches into an epoch, but this loader has 1"):
        next(iter(other))
    with pytest.raises(ValueError, match="no state of a Place"):
        other.load_state_dict({})
    place = Place(DataLoader(range(4)))
    next(iter(place))
    other = Place([1])
    with pytest.raises(ValueError, match="list has none"):
        other.load_state_dict(place.state_dict())


def test_random_states(tmp_path):
    np.random.seed(5)
    np.random.standard_normal()  # leaves a cached second value
    random.gauss(0, 1)
    candelabra.save(random_states(), tmp_path / "states")

    def draw():
        return (
            np.random.standard_normal(3).tolist(),
            [random.gauss(0, 1) for _ in range(3)],
            candelabra.randn(3).tolist(),
        )

    expected = draw()
    set_random_states(candelabra.load(tmp_path / "states"))
    assert draw() == expected


def test_resume_says_what_is_missing(tmp_path):
    trainer, loader = make()
    with pytest.raises(RuntimeError, match="needs checkpoints="):
        trainer.fit(loader, epochs=1, resume=True)
    with pytest.raises(FileNotFoundError):
        trainer.fit(loader, epochs=1, resume=tmp_path / "absent")
    candelabra.save({"weight": 1}, tmp_path / "other")
    with pytest.raises(ValueError, match="no state of a Trainer"):
        trainer.fit(loader, epochs=1, resume=tmp_path / "other")
    trainer.save(tmp_path / "mine")
    state = candelabra.load(tmp_path / "mine")
    state["version"] = 99
    with pytest.raises(ValueError, match="version 99"):
        trainer.load_state_dict(state)
