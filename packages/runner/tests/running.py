"""What the tests share: the executable, and files that are changed on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import candelabra
import candelabra_backend_cpu
import candelabra_runner
from candelabra import Tensor, nn
from candelabra.export import export, save
from candelabra.serialization import load_npy, save_npy
from candelabra.serialization.zip_files import ArchiveWriter

BACKEND = candelabra_backend_cpu.library_path()


def run_command(*words: Any, backend: Any = BACKEND) -> subprocess.CompletedProcess[str]:
    """Run ``candelabra-run`` with one thread, as the process of the tests computes."""
    command = [str(candelabra_runner.executable_path()), *map(str, words)]
    if backend is not None:
        command += ["--backend", str(backend)]
    variables = os.environ | {"OMP_NUM_THREADS": str(candelabra.get_num_threads())}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=variables)


def run_program(path: Path, *inputs: Tensor) -> dict[str, Tensor]:
    """Run a file on tensors and return its results by name."""
    words = []
    for number, tensor in enumerate(inputs):
        words.append(path.parent / f"argument{number}.npy")
        save_npy(words[-1], tensor.detach().contiguous())
    folder = path.parent / "results"
    folder.mkdir(exist_ok=True)
    done = run_command(path, *words, "--output", folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written = [Path(line.rpartition(".npy ")[0] + ".npy") for line in done.stdout.splitlines()]
    return {one.stem: load_npy(one) for one in written}


def refusal(path: Path, *words: Any, backend: Any = BACKEND) -> str:
    """Return the message with which a file or its arguments are refused."""
    done = run_command(path, *words, backend=backend)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("candelabra-run: ")
    return done.stderr.removeprefix("candelabra-run: ").rstrip("\n")


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).eval()


def saved_mlp(path: Path) -> nn.Sequential:
    """Save a small model for arrays of 8 rows, and return it."""
    model = mlp()
    save(export(model, (candelabra.ones(8, 32),)), path, runner=True)
    return model


def entries_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_entries(path: Path, entries: dict[str, bytes], compress: bool = False) -> None:
    with open(path, "wb") as stream:
        archive = ArchiveWriter(stream)
        for name, content in entries.items():
            archive.add(name, content, compress)
        archive.close()


def rewrite(path: Path, target: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """Write a file whose description ``change(runner, program)`` has changed.

    ``runner`` is what the file holds for the runner, and ``program`` its first program, with the
    entries of their dicts by name.
    """
    entries = entries_of(path)
    description = json.loads(entries["description.json"])
    content = description["content"]["dict"]
    runner = dict(next(value for key, value in content if key == "runner")["dict"])
    program = dict(runner["programs"][0]["dict"])
    change(runner, program)
    runner["programs"][0] = {"dict": [list(pair) for pair in program.items()]}
    changed = {"dict": [list(pair) for pair in runner.items()]}
    description["content"]["dict"] = [[key, changed if key == "runner" else value] for key, value in content]
    write_entries(target, {**entries, "description.json": json.dumps(description).encode()})
    return target
