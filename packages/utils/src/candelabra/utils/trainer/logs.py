"""What a run shows and leaves behind: a progress bar, a table, a drawing, a log for TensorBoard."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import candelabra


class ProgressBar:
    """Shows how far training is, by tqdm.

    Parameters
    ----------
    **options
        What ``tqdm.tqdm`` takes.

    Raises
    ------
    ImportError
        When training starts and tqdm is not installed.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._bar: Any = None

    def on_fit_start(self, trainer: Any) -> None:
        """Draw the bar."""
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
        """Move on by a step."""
        self._bar.set_postfix(epoch=trainer.progress.epoch + 1, loss=f"{values['loss']:.4g}", refresh=False)
        self._bar.update()

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Write a line with the epoch's values above the bar."""
        shown = [f"{name} {value:.4g}" for name, value in values.items() if name not in ("epoch", "step", "lr")]
        self._bar.write(f"epoch {values['epoch']:g}: {', '.join(shown)}")

    def on_fit_end(self, trainer: Any) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class CSVLog:
    """Writes a table: a line for every so many steps, and one for each evaluation and epoch.

    The columns are ``step``, ``epoch`` and whatever values there are. A run that goes on from a
    checkpoint takes away the lines that were written after it, so that the table is that of one
    run.

    Parameters
    ----------
    path : str or path
        The file. A run that begins anew writes over it.
    every : int
        After how many steps a line is written; the evaluations always are.
    """

    def __init__(self, path: Any, every: int = 1) -> None:
        self.path = Path(path)
        self.every = every
        #: How many lines belong to the run so far.
        self.lines = 0
        self._columns: list[str] = []

    def on_fit_start(self, trainer: Any) -> None:
        """Keep the lines that belong to the run so far."""
        self._columns = ["step", "epoch"]
        self._write(self._read()[: self.lines])

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a line."""
        if trainer.progress.step % self.every == 0:
            self._add(trainer, values)

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a line."""
        self._add(trainer, values)

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a line with what an evaluation did not have."""
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
        """Return how many lines there are."""
        return {"lines": self.lines}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on after so many lines."""
        self.lines = int(state["lines"])


class Curves:
    """Draws the loss of training and the values of evaluations into a picture, anew after each
    epoch and at the end.

    Parameters
    ----------
    path : str or path
        The picture; its ending says of which kind, such as ``.png``.
    every : int
        After how many steps there is a point.

    Raises
    ------
    ImportError
        When training starts and matplotlib is not installed.
    """

    def __init__(self, path: Any, every: int = 1) -> None:
        self.path = Path(path)
        self.every = every
        #: Steps and losses of training, and by name steps and values of evaluations.
        self.points: dict[str, list[tuple[int, float]]] = {"train_loss": []}

    def on_fit_start(self, trainer: Any) -> None:
        """Look whether it can be drawn, before hours were spent."""
        try:
            import matplotlib.figure  # noqa: F401
        except ImportError as error:
            raise ImportError(f"Curves needs matplotlib ({error}): pip install matplotlib") from error

    def on_step_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a point."""
        if trainer.progress.step % self.every == 0:
            self.points["train_loss"].append((trainer.progress.step, values["loss"]))

    def on_evaluate_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Add a point to each curve."""
        for name, value in values.items():
            self.points.setdefault(name, []).append((trainer.progress.step, value))

    def on_epoch_end(self, trainer: Any, values: dict[str, float]) -> None:
        """Draw."""
        self.draw()

    def on_fit_end(self, trainer: Any) -> None:
        """Draw, where there is something to be drawn."""
        if any(self.points.values()):
            self.draw()

    def draw(self) -> None:
        """Draw into the file: losses in one field, each other value in one of its own."""
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
        """Return the points."""
        return {
            name: candelabra.tensor(points, dtype=candelabra.float64).reshape(-1, 2)
            for name, points in self.points.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on after these points."""
        self.points = {name: [(int(step), value) for step, value in points.tolist()] for name, points in state.items()}


class TensorBoard:
    """Writes scalars for TensorBoard: of every so many steps, and of each evaluation.

    Parameters
    ----------
    log_dir : str or path, optional
        The folder; ``runs/DATE_HOST`` by default.
    every : int
        After how many steps scalars are written.

    Raises
    ------
    ImportError
        When training starts and tensorboard is not installed.
    """

    def __init__(self, log_dir: Any = None, every: int = 1) -> None:
        self.log_dir = log_dir
        self.every = every
        self.writer: Any = None

    def on_fit_start(self, trainer: Any) -> None:
        """Open the log; what an earlier run wrote after the step at which this one goes on is
        hidden.
        """
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
