"""Test that the tensorboard package reads back what was written."""

import io

import numpy as np
import pytest

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

import candelabra
from candelabra.utils.tensorboard import SummaryWriter


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"histograms": 0, "images": 0, "scalars": 0, "tensors": 0})
    return events.Reload()


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", candelabra.tensor(0.5 * step), step, walltime=10.0 + step)
        writer.add_scalar("fine", 0.1, 7, double_precision=True)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 4)
        with pytest.raises(ValueError, match="a scalar has one element"):
            writer.add_scalar("loss", candelabra.zeros(2))
    found = read(tmp_path)
    assert [(one.step, one.value, one.wall_time) for one in found.Scalars("loss")] == [
        (0, 0.0, 10.0),
        (1, 0.5, 11.0),
        (2, 1.0, 12.0),
    ]
    assert make_ndarray(found.Tensors("fine")[0].tensor_proto) == 0.1
    assert [read(tmp_path / f"both_{tag}").Scalars("both")[0].value for tag in "ab"] == [1.0, 2.0]


def test_histogram(tmp_path):
    values = np.random.default_rng(0).normal(size=1000)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("weights", candelabra.tensor(values))
        writer.add_histogram("ten", values, bins=10, max_bins=5)
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("none", candelabra.zeros(0))
        with pytest.raises(ValueError, match="finite"):
            writer.add_histogram("none", [float("nan")])
    made = read(tmp_path).Histograms("weights")[0].histogram_value
    assert (made.num, made.min, made.max) == (1000, values.min(), values.max())
    np.testing.assert_allclose([made.sum, made.sum_squares], [values.sum(), (values**2).sum()])
    assert sum(made.bucket) == 1000
    counts, edges = np.histogram(values, 10)
    ten = read(tmp_path).Histograms("ten")[0].histogram_value
    np.testing.assert_array_equal(ten.bucket[1:], counts.reshape(5, 2).sum(1))
    np.testing.assert_allclose(ten.bucket_limit, edges[::2])


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 5), dtype=np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("one", candelabra.tensor(pixels))
        writer.add_images("two", np.stack([pixels, pixels]) / 255)
        with pytest.raises(ValueError, match="does not fit dataformats"):
            writer.add_image("bad", candelabra.zeros(3, 3))
    found = read(tmp_path)
    one = np.asarray(image.open(io.BytesIO(found.Images("one")[0].encoded_image_string)))
    np.testing.assert_array_equal(one, pixels.transpose(1, 2, 0))
    assert (found.Images("two")[0].width, found.Images("two")[0].height) == (10, 4)


def test_text_curve_and_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "*words*", 2)
        writer.add_pr_curve("pr", [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.6], num_thresholds=3)
        writer.add_hparams({"lr": 0.1, "name": "sgd", "fast": True}, {"accuracy": 0.75}, run_name="run")
        with pytest.raises(ValueError, match="hyperparameter 'x'"):
            writer.add_hparams({"x": []}, {})
    found = read(tmp_path)
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"*words*"
    curve = make_ndarray(found.Tensors("pr")[0].tensor_proto)
    np.testing.assert_allclose(curve[0], [2, 1, 0])
    np.testing.assert_allclose(curve[1], [2, 1, 0])
    np.testing.assert_allclose(curve[4], [0.5, 0.5, 0])
    assert read(tmp_path / "run").Scalars("accuracy")[0].value == 0.75


def test_what_came_after_a_restart_is_hidden(tmp_path):
    for first, last, purge in ((0, 6, None), (4, 8, 4)):
        with SummaryWriter(tmp_path, purge_step=purge) as writer:
            for step in range(first, last):
                writer.add_scalar("loss", float(first), step)
        # Files are read in the order of their names, but these were written within one second.
        next(tmp_path.glob("*.tfevents.*.*")).rename(tmp_path / f"events.out.tfevents.{first}")
    assert [(one.step, one.value) for one in read(tmp_path).Scalars("loss")] == [
        *((step, 0.0) for step in range(4)), *((step, 4.0) for step in range(4, 8)),
    ]  # fmt: skip


def test_sound_and_moving_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    wave = np.sin(np.linspace(0, 20, 400)) * 1.5
    frames = np.random.default_rng(0).random((2, 3, 1, 4, 5))
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("tone", candelabra.tensor(wave)[None], 3, sample_rate=8000)
        writer.add_video("clip", candelabra.tensor(frames), fps=10)
        with pytest.raises(ValueError, match="one channel"):
            writer.add_audio("tone", np.zeros((2, 5)))
        with pytest.raises(ValueError, match=r"\(N, T, C, H, W\)"):
            writer.add_video("clip", np.zeros((2, 5)))
    found = read(tmp_path)
    tone = found.Audio("tone")[0]
    assert (tone.sample_rate, tone.length_frames, tone.step) == (8000.0, 400, 3)
    samples = np.frombuffer(tone.encoded_audio_string[44:], "<i2")
    np.testing.assert_allclose(samples, np.clip(wave, -1, 1) * 32767, atol=1)
    clip = image.open(io.BytesIO(found.Images("clip")[0].encoded_image_string))
    assert (clip.size, clip.n_frames, clip.info["duration"]) == ((10, 4), 3, 100)
    np.testing.assert_allclose(np.asarray(clip.convert("L"))[:, :5], frames[0, 0, 0] * 255, atol=8)


def test_mesh(tmp_path):
    vertices = np.arange(12.0).reshape(1, 4, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("pyramid", vertices, faces=np.array([[[0, 1, 2], [1, 2, 3]]]))
        with pytest.raises(ValueError, match="vertex has shape"):
            writer.add_mesh("pyramid", vertices[0])
    found = read(tmp_path)
    tags = sorted(found.Tags()["tensors"])
    assert len(tags) == 2
    arrays = [make_ndarray(found.Tensors(tag)[0].tensor_proto) for tag in tags]
    assert {array.shape for array in arrays} == {(1, 4, 3), (1, 2, 3)}
    np.testing.assert_array_equal(next(array for array in arrays if array.shape == (1, 4, 3)), vertices)


def test_embedding(tmp_path):
    image = pytest.importorskip("PIL.Image")
    points = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(
            candelabra.tensor(points), list("abcde"), np.ones((5, 1, 2, 4)), global_step=7, tag="words"
        )
        writer.add_embedding(points, [[1, 2]] * 5, metadata_header=["x", "y"])
        with pytest.raises(ValueError, match="5 points and 1 entries"):
            writer.add_embedding(points, ["a"])
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "00007" / "words" / "tensors.tsv", dtype=np.float32), points)
    assert (tmp_path / "00007" / "words" / "metadata.tsv").read_text().split() == list("abcde")
    assert (tmp_path / "00000" / "default" / "metadata.tsv").read_text().splitlines()[0] == "x\ty"
    assert image.open(tmp_path / "00007" / "words" / "sprite.png").size == (12, 6)
    assert 'tensor_path: "00007/words/tensors.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()


def test_graph(tmp_path):
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    from candelabra import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            self.head = nn.Linear(3, 1)

        def forward(self, x):
            return self.head(self.body(x))

    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net(), candelabra.ones(4, 2))
    graph = GraphDef.FromString(read(tmp_path).Graph().SerializeToString())
    nodes = {node.name: (node.op, list(node.input)) for node in graph.node}
    assert nodes == {
        "input/0": ("Placeholder", []),
        "Net/body/0": ("Linear", ["input/0"]),
        "Net/body/1": ("ReLU", ["Net/body/0"]),
        "Net/head": ("Linear", ["Net/body/1"]),
        "output": ("Identity", ["Net/head"]),
    }
    shape = next(node for node in graph.node if node.name == "Net/body/0").attr["_output_shapes"].list.shape[0]
    assert [one.size for one in shape.dim] == [4, 3]
