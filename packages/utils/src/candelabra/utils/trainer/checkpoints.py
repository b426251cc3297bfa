"""Checkpoint files: writing, retention, and selection of the newest and the best."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import candelabra

_NAME = re.compile(r"step-(\d+)\.candelabra")
#: What completes a folder of `candelabra.distributed.checkpoint`.
_INDEX = "index.json"


class Checkpoints:
    """A folder of checkpoints that keeps the newest and the best.

    Each checkpoint is a file ``step-NUMBER.candelabra``. `candelabra.save` writes a temporary file,
    syncs it and renames it, so a file with this name is always complete. Older files are removed
    only after the new one exists. Only one run at a time may use a folder.

    The checkpoints of sharded models are folders with these names, of
    `candelabra.distributed.checkpoint`. Their index is written last.

    Parameters
    ----------
    folder : str or path
        Path of the folder. It is created if it does not exist.
    every_steps : int, optional
        Interval between checkpoints in optimizer steps.
    every_epochs : int, optional
        Interval between checkpoints in epochs; 1 unless `every_steps` is given.
    keep_last : int, optional
        Number of newest checkpoints to keep; None keeps all.
    keep_best : int
        Number of additional best checkpoints to keep, ranked by the latest evaluation before each.
    monitor : str
        Name of the value for the ranking.
    mode : str
        Whether smaller (``"min"``) or larger (``"max"``) values are better.

    Raises
    ------
    ValueError
        If a number is negative or the mode is unknown.

    Examples
    --------
    >>> import tempfile
    >>> from candelabra.utils.trainer import Checkpoints
    >>> checkpoints = Checkpoints(tempfile.mkdtemp(), keep_last=2)
    >>> for step in (10, 20, 30):
    ...     path = checkpoints.save({"weight": 0.5 * step}, step)
    >>> [path.name for path in checkpoints.paths()]
    ['step-00000020.candelabra', 'step-00000030.candelabra']
    >>> candelabra.load(checkpoints.latest())
    {'weight': 15.0}
    """

    def __init__(
        self, folder: Any, *, every_steps: int | None = None, every_epochs: int | None = None, keep_last: int | None = 1, keep_best: int = 0,
        monitor: str = "eval_loss", mode: str = "min",
    ) -> None:  # fmt: skip
        for name, number in (("every_steps", every_steps), ("every_epochs", every_epochs), ("keep_last", keep_last)):
            if number is not None and number < 1:
                raise ValueError(f"Checkpoints: {name} is a positive number or None, but got {number}")
        if keep_best < 0:
            raise ValueError(f"Checkpoints: keep_best is not negative, but got {keep_best}")
        if mode not in ("min", "max"):
            raise ValueError(f"Checkpoints: mode is 'min' or 'max', but got {mode!r}")
        self.folder = Path(folder)
        self.every_steps = every_steps
        self.every_epochs = 1 if every_epochs is None and every_steps is None else every_epochs
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.monitor = monitor
        self.mode = mode
        #: Monitored value of each checkpoint, by step.
        self.values: dict[int, float] = {}

    def path(self, step: int) -> Path:
        """Return the path of the checkpoint of a step."""
        return self.folder / f"step-{step:08d}.candelabra"

    def paths(self) -> list[Path]:
        """Return the paths of all complete checkpoints, oldest first."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name) and _is_complete(path)]
        return sorted(found, key=_step)

    def latest(self) -> Path | None:
        """Return the newest checkpoint, or None."""
        paths = self.paths()
        return paths[-1] if paths else None

    def best(self) -> Path | None:
        """Return the checkpoint with the best value, or None if none has a value."""
        ranked = self._ranked()
        return self.path(ranked[0]) if ranked else None

    def _ranked(self) -> list[int]:
        """Return the steps of checkpoints with a value, best first; ties in order of step."""
        sign = 1 if self.mode == "min" else -1
        there = {_step(path) for path in self.paths()}
        valued = [step for step, value in self.values.items() if step in there and not math.isnan(value)]
        return sorted(valued, key=lambda step: (sign * self.values[step], step))

    def save(self, state: Any, step: int, value: float | None = None) -> Path:
        """Write a checkpoint, then remove those that are not to be kept.

        Parameters
        ----------
        state
            Data for `candelabra.save`.
        step : int
            Step of the run.
        value : float, optional
            Monitored value at this step.
        """
        return self.save_by(lambda path: candelabra.save(state, path), step, value)

    def save_by(self, write: Callable[[Path], object], step: int, value: float | None = None) -> Path:
        """Let a function write a checkpoint, then remove those that are not to be kept.

        Parameters
        ----------
        write : callable
            Called with the path.
        step, value
            As for `save`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if value is not None:
            self.values[step] = float(value)
        else:
            self.values.pop(step, None)
        path = self.path(step)
        write(path)
        self._remove_others()
        return path

    def _remove_others(self) -> None:
        paths = self.paths()
        if self.keep_last is None:
            return
        kept = {_step(path) for path in paths[-self.keep_last :]} | set(self._ranked()[: self.keep_best])
        for path in paths:
            if _step(path) not in kept:
                _remove(path)
                self.values.pop(_step(path), None)

    def remove_remnants(self) -> None:
        """Remove temporary files left by a run that was killed while it wrote a checkpoint."""
        if self.folder.is_dir():
            for path in self.folder.glob("step-*.candelabra.*.part"):
                path.unlink(missing_ok=True)
            for path in self.folder.glob("step-*.candelabra"):
                if _NAME.fullmatch(path.name) and not _is_complete(path):
                    _remove(path)

    def state_dict(self) -> dict[str, Any]:
        """Return the values of the checkpoints."""
        return {"values": dict(self.values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the values of checkpoints that exist in the folder."""
        self.values = {
            int(step): float(value) for step, value in state["values"].items() if os.path.exists(self.path(int(step)))
        }


def _is_complete(path: Path) -> bool:
    return not path.is_dir() or (path / _INDEX).exists()


def _remove(path: Path) -> None:
    """Remove a file or a folder, of which the index goes first: what is left is no checkpoint."""
    if path.is_dir():
        (path / _INDEX).unlink(missing_ok=True)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _step(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    assert found is not None
    return int(found[1])
