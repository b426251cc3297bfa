"""Logging callbacks: progress bar, CSV table, plot of curves, TensorBoard and W&B logs."""

from __future__ import annotations

import csv
import importlib
import os
from pathlib import Path
from typing import Any

import candelabra


class ProgressBar:
    """Shows the progress of training with tqdm.

    Parameters
    ----------
    **options
        Arguments of ``tqdm.tqdm``.

    Raises
    ------
    ImportError
        If tqdm is not installed; raised at the start of training.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._bar: Any = None

    def on_fit_start(self, trainer: Any) -> None:
        """Create the bar."""
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError(
                f"ProgressBar needs tqdm ({error}): pip install tqdm, or Trainer(progress_bar=False)"
            ) from error
        self._bar = tqdm(
            total=trainer.total_steps,
            initial=trainer.progress.step,
            **{"desc": "training", "unit": "step", **self._options},
        )

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Advance the bar by one step."""
        self._bar.set_postfix(epoch=trainer.progress.epoch + 1, loss=f"{values['loss']:.4g}", refresh=False)
        self._bar.update()

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Print a line with the epoch's values above the bar."""
        shown = [f"{name} {value:.4g}" for name, value in values.items() if name not in ("epoch", "step", "lr")]
        self._bar.write(f"epoch {values['epoch']:g}: {', '.join(shown)}")

    def on_fit_end(self, trainer: Any) -> None:
        """Close the bar and leave it on screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class CSVLog:
    """Writes a CSV table, with rows for steps, evaluations and epochs.

    The columns are ``step``, ``epoch`` and the names of all values. A resumed run removes rows that
    were written after its checkpoint, so the table describes a single run.

    Parameters
    ----------
    path : str or path
        Path of the file. A new run overwrites it.
    every : int
        Interval between rows of steps. Evaluations are always written.
    """

    def __init__(self, path: Any, every: int = 1) -> None:
        self.path = Path(path)
        self.every = every
        #: Number of rows that belong to the run so far.
        self.lines = 0
        self._columns: list[str] = []

    def on_fit_start(self, trainer: Any) -> None:
        """Truncate the table to the rows of the run so far."""
        self._columns = ["step", "epoch"]
        self._write(self._read()[: self.lines])

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a row for a step."""
        if trainer.progress.step % self.every == 0:
            self._add(trainer, values)

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a row for an evaluation."""
        self._add(trainer, values)

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a row with the training values of the epoch."""
        self._add(trainer, {name: value for name, value in values.items() if name.startswith("train_")})

    def _add(self, trainer: Any, values: dict[str, float]) -> None:
        row = {"step": str(trainer.progress.step), "epoch": str(trainer.progress.epoch)}
        row.update({name: repr(float(value)) for name, value in values.items()})
        new = [name for name in row if name not in self._columns]
        if new:
            rows = self._read()
            self._columns += new
            self._write([*rows, row])
        else:
            with open(self.path, "a", newline="") as file:
                csv.DictWriter(file, self._columns).writerow(row)
        self.lines += 1

    def _read(self) -> list[dict[str, str]]:
        if not self.lines or not self.path.exists():
            return []
        with open(self.path, newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            self._columns = list(reader.fieldnames or self._columns)
        return rows

    def _write(self, rows: list[dict[str, str]]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(self.path.name + ".part")
        with open(beside, "w", newline="") as file:
            writer = csv.DictWriter(file, self._columns)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(beside, self.path)

    def state_dict(self) -> dict[str, int]:
        """Return the number of rows."""
        return {"lines": self.lines}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore the number of rows."""
        self.lines = int(state["lines"])


class Curves:
    """Plots the training loss and the evaluation values, after each epoch and at the end.

    Parameters
    ----------
    path : str or path
        Path of the image. Its suffix, such as ``.png``, selects the format.
    every : int
        Interval between points in steps.

    Raises
    ------
    ImportError
        If matplotlib is not installed; raised at the start of training.
    """

    def __init__(self, path: Any, every: int = 1) -> None:
        self.path = Path(path)
        self.every = every
        #: (step, value) points of each curve, by name.
        self.points: dict[str, list[tuple[int, float]]] = {"train_loss": []}

    def on_fit_start(self, trainer: Any) -> None:
        """Check that matplotlib is installed, before time is spent on training."""
        try:
            import matplotlib.figure  # noqa: F401
        except ImportError as error:
            raise ImportError(f"Curves needs matplotlib ({error}): pip install matplotlib") from error

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a point to the training loss."""
        if trainer.progress.step % self.every == 0:
            self.points["train_loss"].append((trainer.progress.step, values["loss"]))

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a point to each curve of an evaluation value."""
        for name, value in values.items():
            self.points.setdefault(name, []).append((trainer.progress.step, value))

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Draw the plot."""
        self.draw()

    def on_fit_end(self, trainer: Any) -> None:
        """Draw the plot if there are any points."""
        if any(self.points.values()):
            self.draw()

    def draw(self) -> None:
        """Draw the plot: one panel for the losses and one for each other value."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        losses = [name for name in self.points if name.endswith("loss")]
        fields = [losses, *([name] for name in self.points if name not in losses)]
        figure = Figure(figsize=(6 * len(fields), 4), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, names in zip(figure.subplots(1, len(fields), squeeze=False)[0], fields, strict=True):
            for name in names:
                steps, values = [step for step, _ in self.points[name]], [value for _, value in self.points[name]]
                axes.plot(
                    steps,
                    values,
                    label=name,
                    linewidth=0.8 if name == "train_loss" else 2,
                    marker="." if len(steps) < 30 else None,
                )
            axes.set_xlabel("step")
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.path, dpi=110)

    def state_dict(self) -> dict[str, Any]:
        """Return the points of all curves."""
        return {
            name: candelabra.tensor(points, dtype=candelabra.float64).reshape(-1, 2)
            for name, points in self.points.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the points of all curves."""
        self.points = {name: [(int(step), value) for step, value in points.tolist()] for name, points in state.items()}


class TensorBoard:
    """Writes scalars of steps and evaluations for TensorBoard.

    Parameters
    ----------
    log_dir : str or path, optional
        Folder of the log; ``runs/DATE_HOST`` by default.
    every : int
        Interval between steps whose values are written.

    Raises
    ------
    ImportError
        If tensorboard is not installed; raised at the start of training.
    """

    def __init__(self, log_dir: Any = None, every: int = 1) -> None:
        self.log_dir = log_dir
        self.every = every
        self.writer: Any = None

    def on_fit_start(self, trainer: Any) -> None:
        """Open the log, and hide events that an earlier run wrote after the current step."""
        from ..tensorboard import SummaryWriter

        step = trainer.progress.step
        self.writer = SummaryWriter(self.log_dir, purge_step=step + 1 if step else None)

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Write the values of a step."""
        if trainer.progress.step % self.every == 0:
            self._write("train", trainer, values)

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Write the values of an evaluation."""
        self._write("eval", trainer, {name.removeprefix("eval_"): value for name, value in values.items()})

    def _write(self, field: str, trainer: Any, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(f"{field}/{name}", value, trainer.progress.step)

    def on_fit_end(self, trainer: Any) -> None:
        """Close the log."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class WandB:
    """Logs steps and evaluations to Weights & Biases, or a library with its interface.

    Parameters
    ----------
    run : optional
        A run that exists: an object with ``log(values, step=)``, which is not finished at the end.
        By default, one is started with the first step and finished with the last.
    library : str
        The module whose ``init`` starts the run: ``"wandb"``, or one that has the same functions,
        such as ``"trackio"``.
    every : int
        Interval between steps whose values are logged.
    **options
        Arguments of ``init``, such as ``project``, ``name`` and ``config``.

    Raises
    ------
    ImportError
        If the library is not installed; raised at the start of training.

    Notes
    -----
    A resumed training goes on with its run, if the run has an ``id``.
    """

    def __init__(self, run: Any = None, *, library: str = "wandb", every: int = 1, **options: Any) -> None:
        self.run = run
        self.library = library
        self.every = every
        self.options = options
        self.id: str | None = None
        self._is_own = run is None

    def on_fit_start(self, trainer: Any) -> None:
        """Start the run, or go on with the one of the checkpoint."""
        if self.run is not None:
            return
        try:
            module = importlib.import_module(self.library)
        except ImportError as error:
            raise ImportError(f"WandB needs {self.library} ({error}): pip install {self.library}") from error
        again = {"id": self.id, "resume": "allow"} if self.id is not None else {}
        self.run = module.init(**{**again, **self.options})
        self.id = getattr(self.run, "id", None)

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Log the values of a step."""
        if trainer.progress.step % self.every == 0:
            self._log("train", trainer, values)

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Log the values of an evaluation."""
        self._log("eval", trainer, {name.removeprefix("eval_"): value for name, value in values.items()})

    def _log(self, field: str, trainer: Any, values: dict[str, float]) -> None:
        named = {f"{field}/{name}": float(value) for name, value in values.items()}
        self.run.log({**named, "epoch": trainer.progress.epoch}, step=trainer.progress.step)

    def on_fit_end(self, trainer: Any) -> None:
        """Finish the run, if it was started here."""
        if self.run is not None and self._is_own:
            self.run.finish()
            self.run = None

    def state_dict(self) -> dict[str, str]:
        """Return the id of the run, if it has one."""
        return {} if self.id is None else {"id": str(self.id)}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """Restore the id of the run."""
        self.id = state.get("id")
