"""The Trainer: a loop over epochs, batches and steps."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import candelabra

from .callbacks import check_callback
from .checkpoints import Checkpoints
from .described import trainer_text
from .gradients import clip_gradients
from .interruption import stopped_by_signals
from .loaders import length_of, set_epoch, total_steps
from .logs import ProgressBar
from .metrics import Mean, Metrics, size_of
from .model_calls import call_model, inputs_of, numbers_of, together
from .modes import deterministic_algorithms, evaluating
from .place import Place
from .placement import choose_device, to_device
from .precision import Precision
from .progress import Progress
from .randomness import kept_generators, seed_everything, set_random_states
from .ranks import is_finite, on_any_rank
from .requirements import needs_value, refuse_closures
from .state import check_finite, load_from, newest_checkpoint, save_to, set_state, state_of, write_checkpoint


class Trainer:
    """Trains a model, with evaluation and with checkpoints for exact resume.

    Parameters
    ----------
    model : Module
        The model to train. It is moved to the device.
    optimizer : Optimizer
        Optimizer of the model's parameters.
    loss : callable, optional
        ``loss(output, target)``. A batch is then a pair of inputs and target. Inputs in a list or
        tuple are positional arguments of the model, and a dict holds keyword arguments.
    step : callable, optional
        Alternative to `loss`: ``step(model, batch)`` returns the loss, or a dict with ``"loss"``.
        The dict may contain ``"output"`` and ``"target"`` for metrics, and further numbers to
        average and log.
    scheduler : optional
        A learning-rate schedule. If its ``step`` needs a value (ReduceLROnPlateau), it gets the
        latest `monitor` value after each epoch.
    schedule_by : str
        Whether the schedule steps after each ``"step"`` or each ``"epoch"``.
    metrics : dict or list, optional
        Metrics of evaluations by name: functions of output and target that return the mean over a
        batch, or objects with ``update(output, target)``, ``compute()`` and ``reset()``.
    device : str or device
        ``"auto"`` selects the accelerator if there is one, and the CPU otherwise.
    precision : str or dtype, optional
        ``"bfloat16"`` or ``"float16"`` run the forward pass under autocast; float16 also uses a
        gradient scaler.
    accumulate : int
        Number of batches whose gradients are accumulated for a step. The step minimizes the mean of
        their losses. The last step of an epoch may have fewer batches.
    clip_norm, clip_value : float, optional
        Upper bounds of the joint gradient norm and of each gradient element.
    callbacks : iterable
        Objects with some of the methods in :data:`HOOKS`; see :class:`Callback`.
    checkpoints : Checkpoints, str or path, optional
        Checkpoint settings. A path is a folder that keeps the newest checkpoint, written after each
        epoch.
    on_nan : str
        Action if a loss is not finite: ``"raise"`` a FloatingPointError before anything is changed,
        ``"skip"`` the batch, or ``"ignore"`` it.
    seed : int, optional
        Seed for all generators at the start of training.
    deterministic : bool
        Whether nondeterministic operators raise an error during training.
    max_time : float or timedelta, optional
        Seconds after which :meth:`fit` stops at the end of a step and saves.
    profiler : optional
        A context manager that is active during :meth:`fit`, such as `candelabra.profiler.profile`.
        If it has a method ``step()``, that is called after each step.
    monitor : str
        Name of the value that the schedule monitors.
    progress_bar : bool or dict, optional
        Whether to show a tqdm progress bar; a dict has options for tqdm. By default, it is shown if
        tqdm is installed.

    Attributes
    ----------
    progress : Progress
        Numbers of epochs, steps and batches so far.
    history : list of dict
        For each epoch: its number, the steps so far, the mean loss, and the evaluation values.
    stopped : str or None
        Reason why the latest :meth:`fit` stopped early; ``"SIGINT"`` after Ctrl-C.

    Raises
    ------
    TypeError
        If neither or both of `loss` and `step` are given, the optimizer needs a closure, or an
        object is not a callback.
    ValueError
        If an option is invalid.

    Notes
    -----
    A killed run that resumes from its checkpoint ends with bitwise identical weights. Checkpoints
    contain the model, optimizer, schedule, scaler, callbacks, all generators, and the position in
    the epoch.

    With several ranks, all call :meth:`fit`, with a `DistributedDataParallel` or sharded model and
    a loader with a `DistributedSampler`. Any number of ranks can resume.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn, optim
    >>> from candelabra.utils import Trainer
    >>> from candelabra.utils.data import DataLoader, TensorDataset
    >>> x = candelabra.linspace(-1, 1, 64)[:, None]
    >>> loader = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16, shuffle=True)
    >>> model = nn.Linear(1, 1)
    >>> trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.3), nn.functional.mse_loss, progress_bar=False)
    >>> history = trainer.fit(loader, epochs=50)
    >>> round(model.bias.item(), 3), trainer.progress.step
    (1.0, 200)
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        loss: Callable[..., Any] | None = None,
        *,
        step: Callable[..., Any] | None = None,
        scheduler: Any = None,
        schedule_by: str = "epoch",
        metrics: Any = None,
        device: Any = "auto",
        precision: Any = None,
        scaler: Any = None,
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        callbacks: Iterable[Any] = (),
        checkpoints: Any = None,
        on_nan: str = "raise",
        seed: int | None = None,
        deterministic: bool = False,
        max_time: Any = None,
        profiler: Any = None,
        monitor: str = "eval_loss",
        progress_bar: bool | dict[str, Any] | None = None,
    ) -> None:
        if (loss is None) == (step is None):
            raise TypeError(
                "Trainer: give loss=, a function of output and target, or step=, a function of model and batch"
            )
        refuse_closures(optimizer)
        if schedule_by not in ("step", "epoch"):
            raise ValueError(f"Trainer: schedule_by is 'step' or 'epoch', but got {schedule_by!r}")
        if on_nan not in ("raise", "skip", "ignore"):
            raise ValueError(f"Trainer: on_nan is 'raise', 'skip' or 'ignore', but got {on_nan!r}")
        if accumulate < 1:
            raise ValueError(f"Trainer: accumulate is the number of batches of a step, but got {accumulate}")
        for name, bound in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if bound is not None and not bound > 0:
                raise ValueError(f"Trainer: {name} must be positive, but got {bound}")
        self.device = choose_device(device)
        self.model = model.to(self.device)
        self.optimizer = optimizer
        self.loss = loss
        self.step_function = step
        self.scheduler = scheduler
        self.schedule_by = schedule_by
        self.metrics = Metrics(metrics)
        self.precision = Precision(precision, self.device.type, scaler)
        self.accumulate = accumulate
        self.clip_norm, self.clip_value = clip_norm, clip_value
        if progress_bar is None:
            progress_bar = importlib.util.find_spec("tqdm") is not None
        shown = [] if progress_bar is False else [ProgressBar(**({} if progress_bar is True else progress_bar))]
        self.callbacks = [*shown, *callbacks]
        for callback in self.callbacks:
            check_callback(callback)
        if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
            checkpoints = Checkpoints(checkpoints)
        self.checkpoints: Checkpoints | None = checkpoints
        self.on_nan = on_nan
        self.seed = seed
        self.deterministic = deterministic
        self.max_time = max_time.total_seconds() if hasattr(max_time, "total_seconds") else max_time
        self.profiler = profiler
        self.monitor = monitor
        self.progress = Progress()
        self.history: list[dict[str, float]] = []
        self.stopped: str | None = None
        self._is_stopping = False  # by all ranks
        self.is_fitting = False
        #: Total number of training steps, or None if it is unknown.
        self.total_steps: int | None = None
        self._place: Place | None = None
        self._place_state: dict[str, Any] | None = None
        self._random: dict[str, Any] | None = None
        self._running: dict[str, Mean] = {}
        self._evaluated: dict[str, float] = {}
        self._saved_at: tuple[int, int] | None = None

    __repr__ = trainer_text

    def fit(
        self,
        train_loader: Any,
        eval_loader: Any = None,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        eval_every: int | None = None,
        resume: Any = False,
    ) -> list[dict[str, float]]:
        """Train until a total number of epochs or steps is reached.

        Parameters
        ----------
        train_loader : iterable
            Iterable over the batches of an epoch, such as a `DataLoader`.
        eval_loader : iterable, optional
            Data for the evaluation after each epoch.
        epochs, steps : int, optional
            Total number of epochs or steps, counted from the start of training and not of this
            call. A resumed run takes the same values. If both are given, the first limit reached
            applies.
        eval_every : int, optional
            Evaluate every `eval_every` steps instead of after each epoch.
        resume : bool, str or path
            True resumes from the newest checkpoint, if there is one; a path selects a checkpoint.

        Returns
        -------
        list of dict
            :attr:`history`.

        Raises
        ------
        ValueError
            If neither `epochs` nor `steps` is given.
        RuntimeError
            If there are no batches, or `resume` is True and there is no checkpoint folder.
        FloatingPointError
            If a loss is not finite and `on_nan` is ``"raise"``.

        Notes
        -----
        On Ctrl-C or SIGTERM, training stops after the current step, saves the state, sets `stopped`
        and returns. A second signal has its original effect.
        """
        if epochs is None and steps is None:
            raise ValueError("fit(): say when to stop, by epochs= or steps=")
        if eval_every is not None and eval_loader is None:
            raise ValueError("fit(): eval_every= needs an eval_loader")
        begins = self.progress == Progress()
        if resume:
            begins = not self._resume(resume)
        if begins and self.seed is not None:
            seed_everything(self.seed)
        self.stopped = None
        self.total_steps = total_steps(train_loader, self.accumulate, epochs, steps)
        self._place = Place(train_loader)
        if self._place_state is not None:
            self._place.load_state_dict(self._place_state)
        deadline = math.inf if self.max_time is None else time.monotonic() + self.max_time

        def is_over(stepped: bool = True) -> bool:
            # Take at least one step. Otherwise repeated runs with a short time limit would never
            # finish.
            if stepped and self.stopped is None and time.monotonic() >= deadline:
                self.stop("max_time")
            self._is_stopping = on_any_rank(self.stopped is not None)
            if self._is_stopping and self.stopped is None:
                self.stop("another rank")
            return (
                self._is_stopping
                or (epochs is not None and self.progress.epoch >= epochs)
                or (steps is not None and self.progress.step >= steps)
            )

        self.is_fitting = True
        with (
            stopped_by_signals(self.stop),
            nullcontext() if self.profiler is None else self.profiler,
            deterministic_algorithms(self.deterministic),
        ):
            try:
                self._call("on_fit_start")
                if self._random is not None:
                    # Restore the generators last, so that the resume itself does not affect later
                    # random numbers.
                    set_random_states(self._random)
                    self._random = None
                while not is_over(stepped=False):
                    self._train_epoch(eval_loader, eval_every, is_over)
                self.save_checkpoint(again=False)
            except BaseException as error:
                self._call("on_exception", error)
                raise
            finally:
                self._place_state = self._place.state_dict()
                self._place = None
                self.is_fitting = False
                self._call("on_fit_end")
        return self.history

    def _train_epoch(self, eval_loader: Any, eval_every: int | None, is_over: Callable[[], bool]) -> None:
        """Train on the remaining batches of an epoch."""
        place, progress = self._place, self.progress
        assert place is not None
        set_epoch(place.loader, progress.epoch)
        if not Place.is_within_epoch(self._place_state):
            self._running = {}
            self._call("on_epoch_start")
        self._place_state = None
        self.model.train()
        self.optimizer.zero_grad()
        pending, losses = 0, 0.0
        for batch in place:
            loss = self._train_batch(batch)
            if loss is not None:
                pending, losses = pending + 1, losses + loss
            if pending == self.accumulate:
                self._take_step(pending, losses / pending)
                pending, losses = 0, 0.0
                self._after_step(eval_loader, eval_every)
                # If training ends with the last batch of an epoch, the epoch also counts as
                # complete.
                if is_over() and (self._is_stopping or place.batches != length_of(place.loader)):
                    break
        else:
            if pending:
                self._take_step(pending, losses / pending)
                self._after_step(eval_loader, eval_every)
        # If the end of the loader was not reached yet, the epoch stays open. A resumed run
        # completes it.
        if place.exhausted:
            self._end_epoch(eval_loader if eval_every is None else None)

    def _train_batch(self, batch: Any) -> float | None:
        """Compute the gradient of a batch's loss; return None for a skipped batch."""
        batch = to_device(batch, self.device, non_blocking=True)
        self._call("on_batch_start", batch)
        with self.precision.forward():
            result = self.forward(batch)
        loss = float(result["loss"].item())
        self.progress.batches += 1
        if self.on_nan != "ignore" and not is_finite(loss, on_all_ranks=self.on_nan == "skip"):
            if self.on_nan == "raise":
                raise FloatingPointError(
                    f"the loss of batch {self.progress.batches}, in epoch {self.progress.epoch + 1} after step {self.progress.step}, is {loss}; "
                    "the parameters are as they were before it (on_nan='skip' leaves such batches out)"
                )
            self.progress.skipped += 1
            return None
        self.precision.backward(result["loss"] / self.accumulate)
        self._add_running(result, size_of(batch))
        self._call("on_batch_end", batch, loss)
        return loss

    def _take_step(self, pending: int, loss: float) -> None:
        """Step the optimizer with the gradients of `pending` batches, then the schedule."""
        if pending < self.accumulate:
            # Each loss was divided by `accumulate`, but fewer batches were left.
            for parameter in self._parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(self.accumulate / pending)
        self._call("on_before_step")
        values = {"loss": loss, "lr": float(self.optimizer.param_groups[0]["lr"])}
        if self.clip_norm is not None or self.clip_value is not None:
            self.precision.unscale(self.optimizer)
            values["grad_norm"] = float(clip_gradients(self._parameters(), self.clip_norm, self.clip_value))
        stepped = self.precision.step(self.optimizer)
        self.optimizer.zero_grad()
        self.progress.step += 1
        if stepped and self.scheduler is not None and self.schedule_by == "step" and not needs_value(self.scheduler):
            self.scheduler.step()
        self._call("on_step_end", values)

    def _after_step(self, eval_loader: Any, eval_every: int | None) -> None:
        step, checkpoints = self.progress.step, self.checkpoints
        if eval_every is not None and step % eval_every == 0:
            self._evaluated = self.evaluate(eval_loader)
        if checkpoints is not None and checkpoints.every_steps is not None and step % checkpoints.every_steps == 0:
            self.save_checkpoint()
        if hasattr(self.profiler, "step"):
            self.profiler.step()

    def _end_epoch(self, eval_loader: Any) -> None:
        """Evaluate, record the results, and step the schedule."""
        place = self._place
        assert place is not None
        if not place.batches:
            raise RuntimeError(
                f"fit(): there are no batches in epoch {self.progress.epoch + 1}; the loader has to yield them each time that it is iterated over"
            )
        learning_rate = float(self.optimizer.param_groups[0]["lr"])
        if eval_loader is not None:
            self._evaluated = self.evaluate(eval_loader)
        self.progress.epoch += 1
        place.next_epoch()
        values = {"epoch": float(self.progress.epoch), "step": float(self.progress.step), "lr": learning_rate}
        values |= {f"train_{name}": mean.value for name, mean in self._running.items()}
        values |= self._evaluated
        self.history.append(values)
        if self.scheduler is not None:
            if needs_value(self.scheduler):
                self.scheduler.step(values.get(self.monitor, values.get("train_loss")))
            elif self.schedule_by == "epoch":
                self.scheduler.step()
        self._call("on_epoch_end", values)
        checkpoints = self.checkpoints
        if (
            checkpoints is not None
            and checkpoints.every_epochs is not None
            and self.progress.epoch % checkpoints.every_epochs == 0
        ):
            self.save_checkpoint()

    def forward(self, batch: Any) -> dict[str, Any]:
        """Compute the loss of a batch on the device; return a dict with ``"loss"``.

        The dict also contains the other values that `step` returns.
        """
        if self.step_function is not None:
            result = self.step_function(self.model, batch)
            if not isinstance(result, dict):
                result = {"loss": result}
            if not isinstance(result.get("loss"), candelabra.Tensor):
                raise TypeError(
                    f"step(model, batch) returns the loss as a tensor, or a dict with it as 'loss', but got {type(result.get('loss')).__name__}"
                )
            return result
        if not isinstance(batch, list | tuple) or len(batch) != 2:
            raise TypeError(
                f"a batch is a pair of inputs and target where loss= is given, but got {type(batch).__name__}"
                + (f" of {len(batch)}" if isinstance(batch, list | tuple) else "")
                + "; give step=, a function of model and batch, for others"
            )
        assert self.loss is not None
        output = call_model(self.model, batch[0])
        return {"loss": self.loss(output, batch[1]), "output": output, "target": batch[1]}

    def stop(self, reason: str) -> None:
        """Stop training after the current step; `reason` is stored in `stopped`."""
        self.stopped = reason

    # ---- evaluation

    def evaluate(self, loader: Any) -> dict[str, float]:
        """Return the mean loss and the metrics over all batches of a loader.

        The model is in evaluation mode and gradients are not recorded. All generator states are
        restored, so an evaluation does not affect training.

        Parameters
        ----------
        loader : iterable
            Iterable over batches as in training.

        Returns
        -------
        dict
            ``eval_loss``, and ``eval_NAME`` for each metric and each further number that `step`
            returns.
        """
        means: dict[str, Mean] = {}
        self.metrics.reset()
        with evaluating(self.model), kept_generators():
            if self.is_fitting:
                self._call("on_evaluate_start")
            for batch in loader:
                batch = to_device(batch, self.device, non_blocking=True)
                with self.precision.forward():
                    result = self.forward(batch)
                for name, value in numbers_of(result).items():
                    means.setdefault(name, Mean()).add(value, size_of(batch))
                if self.metrics:
                    if "output" not in result or "target" not in result:
                        raise KeyError(
                            "metrics need step(model, batch) to return a dict with 'output' and 'target' beside 'loss'"
                        )
                    self.metrics.add(result["output"], result["target"])
        if not means:
            raise RuntimeError("evaluate(): the loader has no batches")
        values = {f"eval_{name}": mean.value for name, mean in means.items()}
        values |= {f"eval_{name}": value for name, value in self.metrics.values().items()}
        if self.is_fitting:
            self._call("on_evaluate_end", values)
        return values

    def predict(self, loader: Any, *, step: Callable[..., Any] | None = None) -> Any:
        """Return the model's outputs for all batches of a loader, concatenated on the CPU.

        Parameters
        ----------
        loader : iterable
            Iterable over batches as in training, or over inputs: a tensor, a dict, or a list with
            one entry.
        step : callable, optional
            ``step(model, batch)`` returns the output, for other kinds of batches.

        Returns
        -------
        Tensor, or tuple, list or dict of tensors
            Outputs concatenated along the first dimension.
        """
        outputs = []
        with evaluating(self.model), kept_generators():
            for batch in loader:
                batch = to_device(batch, self.device, non_blocking=True)
                with self.precision.forward():
                    output = step(self.model, batch) if step is not None else call_model(self.model, inputs_of(batch))
                outputs.append(to_device(output, "cpu"))
        if not outputs:
            raise RuntimeError("predict(): the loader has no batches")
        return together(outputs)

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `candelabra.save`; for sharded models there is :meth:`save`."""
        return state_of(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a trainer with the same setup; the next :meth:`fit` resumes from it.

        Raises
        ------
        ValueError
            If the state is not that of a trainer.
        """
        set_state(self, state)

    def save(self, path: Any) -> None:
        """Write the state to a file atomically; of a sharded model to a folder, by all ranks."""
        save_to(self, path)

    def load(self, path: Any) -> None:
        """Load the state from a file, or from a folder, which any number of ranks can load."""
        load_from(self, path)

    def save_checkpoint(self, again: bool = True) -> Path | None:
        """Write a checkpoint now and return its path.

        Returns None without a checkpoint folder, before the first batch, or if `again` is False and
        this state is already saved.
        """
        at = (self.progress.step, self.progress.epoch)
        if self.checkpoints is None or (not again and self._saved_at == at) or not self.progress.batches:
            return None
        if self.on_nan != "ignore":
            check_finite(self)
        value = self._evaluated.get(self.checkpoints.monitor)
        if value is None and self.history:
            value = self.history[-1].get(self.checkpoints.monitor)
        if value is not None:
            self.checkpoints.values[at[0]] = value
        path = write_checkpoint(self, self.checkpoints, value)
        self._saved_at = at
        self._call("on_checkpoint", path)
        return path

    def _resume(self, source: Any) -> bool:
        """Load the selected checkpoint; return False if there is none."""
        if source is True:
            if self.checkpoints is None:
                raise RuntimeError("fit(): resume=True needs checkpoints=, the folder to look in")
            source = newest_checkpoint(self.checkpoints)
            if source is None:
                return False
        self.load(source)
        self._saved_at = (self.progress.step, self.progress.epoch)
        return True

    # ---- helpers

    def _parameters(self) -> list[Any]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _call(self, name: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            method = getattr(callback, name, None)
            if method is not None:
                method(self, *arguments)

    def _add_running(self, result: dict[str, Any], size: int) -> None:
        for name, value in numbers_of(result).items():
            self._running.setdefault(name, Mean()).add(value, size)
