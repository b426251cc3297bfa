"""TensorBoard logs: scalars, histograms, images, figures, texts, curves and hyperparameters.

They are written with the `tensorboard` package.
"""

from __future__ import annotations

import datetime
import io
import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np

import candelabra

try:
    from google.protobuf import text_format
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.plugins.hparams import summary_v2 as hparams_summary
    from tensorboard.plugins.pr_curve.metadata import create_summary_metadata as pr_curve_metadata
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from . import tensorboard_parts as parts
except ImportError as error:
    raise ImportError(
        f"candelabra.utils.tensorboard needs the tensorboard package ({error}): pip install tensorboard"
    ) from error

__all__ = ["SummaryWriter"]


def _array(values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, candelabra.Tensor):
        values = values.detach().cpu()
        if values.dtype == candelabra.bfloat16:
            values = values.float()
        return np.asarray(values.numpy())
    return np.asarray(values)


def _number(value: Any) -> float:
    array = _array(value)
    if array.size != 1:
        raise ValueError(f"a scalar has one element, but got shape {array.shape}")
    return float(array.reshape(()))


def _histogram(values: Any, bins: Any, max_bins: int | None) -> HistogramProto:
    array = _array(values).astype(np.float64).ravel()
    if array.size == 0:
        raise ValueError("The input has no element.")
    if not np.isfinite(array).all():
        raise ValueError("a histogram is of finite values, but there are NaN or infinite ones")
    if isinstance(bins, str) and bins == "tensorflow":
        # Logarithmic bin edges; each is about 1.1 times the one before.
        positive = np.geomspace(1e-12, 1e20, 775)
        bins = np.concatenate([-positive[::-1], [0.0], positive])
        if np.abs(array).max() >= 1e20:
            bins = np.concatenate([[-np.finfo(np.float64).max], bins, [np.finfo(np.float64).max]])
    counts, edges = np.histogram(array, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        edges = np.append(edges[:-1:step], edges[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if len(filled) else (0, 1)
    return HistogramProto(
        min=array.min(), max=array.max(), num=array.size, sum=array.sum(), sum_squares=(array * array).sum(),
        bucket_limit=edges[first : last + 1].tolist(), bucket=[0, *counts[first:last].tolist()],
    )  # fmt: skip


def _image(values: Any, dataformats: str) -> Summary.Image:
    from PIL import Image

    array = _array(values)
    layout = dataformats.upper()
    if (
        array.ndim != len(layout)
        or len(set(layout)) != len(layout)
        or set(layout) - set("NCHW")
        or not {"H", "W"} <= set(layout)
    ):
        raise ValueError(f"an image of shape {array.shape} does not fit dataformats {dataformats!r}")
    for missing in "NC":
        if missing not in layout:
            array, layout = array[None], missing + layout
    array = array.transpose([layout.index(letter) for letter in "NHWC"])
    count, height, width, channels = array.shape
    if channels not in (1, 3, 4):
        raise ValueError(f"an image has 1, 3 or 4 channels, but got {channels}")
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = np.zeros((rows * height, columns * width, channels), array.dtype)
    for number, one in enumerate(array):
        top, left = number // columns * height, number % columns * width
        grid[top : top + height, left : left + width] = one
    if grid.dtype != np.uint8:
        # Floating-point values are clipped to [0, 1].
        grid = (np.clip(grid.astype(np.float64), 0, 1) * 255).astype(np.uint8)
    shown = Image.fromarray(grid[..., 0] if channels == 1 else grid)
    file = io.BytesIO()
    shown.save(file, format="PNG")
    return Summary.Image(
        height=grid.shape[0], width=grid.shape[1], colorspace=channels, encoded_image_string=file.getvalue()
    )


class SummaryWriter:
    """Writes events to a folder for TensorBoard (``tensorboard --logdir FOLDER``).

    Parameters
    ----------
    log_dir : str, optional
        Folder of the log; ``runs/DATE_HOST`` by default.
    comment : str
        Suffix of the default folder name.
    purge_step : int, optional
        After a restart from a checkpoint, hide older events from this step on.
    max_queue : int
        Number of events to queue before an add call blocks.
    flush_secs : int
        Seconds between flushes of the queue.
    filename_suffix : str
        Suffix of file names.

    Examples
    --------
    >>> from candelabra.utils.tensorboard import SummaryWriter  # doctest: +SKIP
    >>> with SummaryWriter("runs/first") as writer:  # doctest: +SKIP
    ...     writer.add_scalar("loss", 0.5, 1)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            moment = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer: Any = None
        self._others: dict[str, SummaryWriter] = {}
        self._projector = ProjectorConfig()
        self._open()

    def _open(self) -> Any:
        if self.file_writer is None:
            self.file_writer = EventFileWriter(self.log_dir, *self._options)
            if self.purge_step is not None:
                now = time.time()
                self.file_writer.add_event(Event(wall_time=now, step=self.purge_step, file_version="brain.Event:2"))
                restarted = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(wall_time=now, step=self.purge_step, session_log=restarted))
                self.purge_step = None
        return self.file_writer

    def _add(self, summary: Summary, step: int | None, walltime: float | None) -> None:
        event = Event(wall_time=time.time() if walltime is None else walltime, summary=summary)
        if step is not None:
            event.step = int(step)
        self._open().add_event(event)

    def get_logdir(self) -> str:
        """Return the folder of the log."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add a scalar.

        Parameters
        ----------
        tag : str
            Name of the curve.
        scalar_value : float or Tensor
            The value.
        global_step : int, optional
            Step of the value.
        walltime : float, optional
            Time of the event in seconds since 1970; the current time by default.
        new_style, double_precision : bool
            Whether to store the value as a tensor, and whether in double precision.
        """
        number = _number(scalar_value)
        if not (new_style or double_precision):
            self._add(Summary(value=[Summary.Value(tag=tag, simple_value=number)]), global_step, walltime)
            return
        tensor = (
            TensorProto(double_val=[number], dtype="DT_DOUBLE")
            if double_precision
            else TensorProto(float_val=[number], dtype="DT_FLOAT")
        )
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
        self._add(Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)]), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add scalars to several curves of one chart; each curve has its own subfolder."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._others:
                self._others[folder] = SummaryWriter(folder)
            self._others[folder].add_scalar(main_tag, value, global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add a histogram of values.

        `bins` is an argument of `numpy.histogram`, or ``"tensorflow"`` for logarithmic bins.
        """
        made = _histogram(values, bins, max_bins)
        self._add(Summary(value=[Summary.Value(tag=tag, histo=made)]), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add an image with floats from 0 to 1 or uint8 values.

        `dataformats` gives the meaning of the dimensions, for example ``"CHW"``.
        """
        self._add(Summary(value=[Summary.Value(tag=tag, image=_image(img_tensor, dataformats))]), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add a batch of images, side by side in one image."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Add a matplotlib figure or a list of figures, and close them by default."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figures = figure if isinstance(figure, list | tuple) else [figure]
        drawn = []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba()).copy())
            if close:
                from matplotlib import pyplot

                pyplot.close(one)
        self.add_image(tag, np.stack(drawn), global_step, walltime, "NHWC")

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a text, which TensorBoard renders as Markdown."""
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape)
        self._add(
            Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor)]),
            global_step,
            walltime,
        )

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a precision-recall curve from 0/1 labels and predicted probabilities of label 1."""
        truth, given = _array(labels).ravel().astype(bool), _array(predictions).ravel().astype(np.float64)
        if truth.shape != given.shape:
            raise ValueError(f"there are {truth.size} labels and {given.size} predictions")
        weight = (
            np.ones_like(given)
            if weights is None
            else np.broadcast_to(_array(weights).ravel(), given.shape).astype(np.float64)
        )
        place = np.clip(np.floor(given * (num_thresholds - 1)), 0, num_thresholds - 1).astype(np.int64)
        positive = np.bincount(place, weight * truth, num_thresholds)[::-1].cumsum()[::-1]
        negative = np.bincount(place, weight * ~truth, num_thresholds)[::-1].cumsum()[::-1]
        true_negative, false_negative = negative[0] - negative, positive[0] - positive
        precision = positive / np.maximum(positive + negative, 1e-7)
        recall = positive / np.maximum(positive + false_negative, 1e-7)
        data = np.stack([positive, negative, true_negative, false_negative, precision, recall])
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in data.shape])
        tensor = TensorProto(dtype="DT_FLOAT", float_val=data.ravel().tolist(), tensor_shape=shape)
        metadata = pr_curve_metadata(display_name=tag, description="", num_thresholds=num_thresholds)
        self._add(Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)]), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add hyperparameters (numbers, strings, booleans) and metrics of a run, in a subfolder."""
        for name, value in hparam_dict.items():
            if not isinstance(value, bool | int | float | str | candelabra.Tensor):
                raise ValueError(
                    f"hyperparameter {name!r} is a number, a string or a truth value, but got {type(value).__name__}"
                )
        plain = {
            name: _number(value) if isinstance(value, candelabra.Tensor) else value
            for name, value in hparam_dict.items()
        }
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            names = [hparams_summary.HParam(name) for name in plain]
            metrics = [hparams_summary.Metric(name) for name in metric_dict]
            writer._add(hparams_summary.hparams_config_pb(hparams=names, metrics=metrics), None, None)
            writer._add(hparams_summary.hparams_pb(plain), None, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Add audio: samples from -1 to 1 of shape (L) or (1, L)."""
        made = parts.sound(_array(snd_tensor), sample_rate)
        self._add(Summary(value=[Summary.Value(tag=tag, audio=made)]), global_step, walltime)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Add videos of shape (N, T, C, H, W), side by side as an animated GIF; needs Pillow.

        Values are floats from 0 to 1 or uint8.
        """
        made = parts.moving_picture(_array(vid_tensor), fps)
        self._add(Summary(value=[Summary.Value(tag=tag, image=made)]), global_step, walltime)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: dict[str, Any] | None = None,
        global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add triangle meshes.

        Shapes: vertices (B, N, 3), colors (B, N, 3) from 0 to 255, and faces (B, M, 3) with vertex
        indices.
        """
        given = [None if part is None else _array(part) for part in (vertices, colors, faces)]
        assert given[0] is not None
        self._add(parts.mesh(tag, given[0], given[1], given[2], config_dict), global_step, walltime)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Add points (N, D) for the embedding projector, with labels and images (N, C, H, W).

        With `metadata_header`, a list of column names, each entry of `metadata` is a list of as
        many values.
        """
        points = _array(mat)
        if points.ndim != 2:
            raise ValueError(f"embeddings are of shape (N, D), but got {points.shape}")
        step = 0 if global_step is None else int(global_step)
        place = os.path.join(f"{step:05d}", tag.replace("/", "_").replace("%", "_"))
        images = None if label_img is None else _array(label_img)
        parts.write_embedding(Path(self.log_dir) / place, points, metadata, metadata_header, images)
        one = self._projector.embeddings.add(
            tensor_name=f"{tag}:{step:05d}", tensor_path=os.path.join(place, "tensors.tsv")
        )
        if metadata is not None:
            one.metadata_path = os.path.join(place, "metadata.tsv")
        if images is not None:
            one.sprite.image_path = os.path.join(place, "sprite.png")
            one.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
        Path(self.log_dir, "projector_config.pbtxt").write_text(text_format.MessageToString(self._projector))

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Add the graph of a model, with one node per call of a module without submodules.

        Nodes are nested in the scopes of their parent modules.

        Parameters
        ----------
        model : Module
            The model. It is run once without recording gradients.
        input_to_model : Tensor or tuple of Tensor
            Arguments of the run.
        verbose : bool
            Whether to print the graph.
        use_strict_trace : bool
            Ignored, because nothing is traced.
        """
        inputs = input_to_model if isinstance(input_to_model, list | tuple) else (input_to_model,)
        graph = parts.graph_of(model, tuple(inputs))
        if verbose:
            print(graph)
        self._open().add_event(Event(wall_time=time.time(), graph_def=graph.SerializeToString()))

    def flush(self) -> None:
        """Write queued events to disk."""
        if self.file_writer is not None:
            self.file_writer.flush()
        for other in self._others.values():
            other.flush()

    def close(self) -> None:
        """Write queued events and close the files; the next event opens a new file."""
        if self.file_writer is not None:
            self.file_writer.close()
            self.file_writer = None
        for other in self._others.values():
            other.close()
        self._others.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
