"""Run shortened examples: each learns something and shows it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(group) for group in found.groups()]


def test_text_model(tmp_path: Path) -> None:
    out = run(
        "text_model",
        "--steps",
        "30",
        "--batch",
        "8",
        "--width",
        "32",
        "--characters",
        "100000",
        "--output",
        str(tmp_path),
    )
    for name in ("LSTM", "GPT"):
        (bits,) = numbers(rf"{name}: .* ([\d.]+) bits a character of new text", out)
        assert bits < 6.0  # random guessing gives 6.58
    assert (tmp_path / "text_model.png").stat().st_size > 5_000


def test_generate_digits(tmp_path: Path) -> None:
    out = run("generate_digits", "--steps", "150", "--rounds", "100", "--output", str(tmp_path))
    first, last = numbers(r"autoencoder: ([\d.]+) nats an image at first, ([\d.]+) at last", out)
    assert last < 0.8 * first
    invented, forged, noise = numbers(r"autoencoder ([\d.]+), adversaries ([\d.]+), random pixels ([\d.]+)", out)
    assert max(invented, forged) < 0.7 * noise
    assert (tmp_path / "generate_digits.png").stat().st_size > 5_000


def test_cart_pole(tmp_path: Path) -> None:
    out = run("cart_pole", "--rounds", "15", "--moments", "100", "--output", str(tmp_path))
    first, last, _ = numbers(r"stood ([\d.]+) moments at first, ([\d.]+) of (\d+) at last", out)
    assert last > 1.5 * first
    assert (tmp_path / "cart_pole.png").stat().st_size > 5_000


def test_expression_trees() -> None:
    out = run("expression_trees", "--steps", "100")
    before, after = numbers(r"depth 2: ([\d.]+) before, ([\d.]+) after", out)
    assert after < 0.6 * before


def test_hogwild() -> None:
    out = run("hogwild", "--processes", "2", "--epochs", "4")
    (steps,) = numbers(r"2 processes took (\d+) steps", out)
    before, after = numbers(r"accuracy ([\d.]+)% before, ([\d.]+)% after", out)
    assert steps == 2 * 4 * 43 and after > 85 > 30 > before


def test_train_digits_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Fix the GEMM library: autotuning may pick another one in each process, which changes rounding.
    monkeypatch.setenv("CANDELABRA_CPU_GEMM", "mkl")
    out = run("train_digits_trainer", "--epochs", "3", "--output", str(tmp_path / "whole"))
    accuracy, epochs, steps = numbers(r"test accuracy ([\d.]+)% .* (\d+) epochs, (\d+) steps", out)
    assert accuracy > 90 and (epochs, steps) == (3, 66)
    table = (tmp_path / "whole" / "log.csv").read_text().splitlines()
    assert len(table) == 1 + 66 + 2 * 3
    assert (tmp_path / "whole" / "curves.png").stat().st_size > 10_000
    # Interrupt and resume: the log equals that of one run.
    parts = tmp_path / "parts"
    command = [sys.executable, str(EXAMPLES / "train_digits_trainer.py"), "--epochs", "3", "--output", str(parts)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(parts.glob("step-*.candelabra")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=300)
    assert process.returncode == 0 and "stopped (SIGINT)" in told, errors
    run("train_digits_trainer", "--epochs", "3", "--output", str(parts), "--resume")
    assert (parts / "log.csv").read_text().splitlines() == table


def test_extensions_scipy() -> None:
    out = run("extensions_scipy", "--size", "60", "--steps", "100")
    first, last = numbers(r"off by ([\d.]+) at first, ([\d.]+) at last", out)
    assert last < 0.01 * first


def test_extensions_cython() -> None:
    pytest.importorskip("Cython", reason="pip install cython")
    true, found = numbers(r"the decay is ([\d.]+), found as ([\d.]+)", run("extensions_cython"))
    assert abs(true - found) < 0.01


def test_extensions_numba() -> None:
    pytest.importorskip("numba", reason="pip install numba")
    out = run("extensions_numba")
    (error,) = numbers(r"a sine up to ([\d.]+)", out)
    assert error < 0.01
    assert max(map(len, out.splitlines())) == 61
