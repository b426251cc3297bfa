"""Encoders of `SummaryWriter`: audio, video, meshes, embeddings and module graphs."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

import candelabra

Array = np.ndarray[Any, Any]


def sound(samples: Array, sample_rate: int) -> Summary.Audio:
    """Encode samples (L) or (1, L), clipped to [-1, 1], as a 16-bit WAV file."""
    flat = samples.squeeze()
    if flat.ndim > 1:
        raise ValueError(f"sound is of one channel, of shape (L) or (1, L), but got {samples.shape}")
    numbers = (np.clip(np.atleast_1d(flat).astype(np.float64), -1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes(numbers.tobytes())
    return Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(numbers),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )


def moving_picture(frames: Array, fps: float) -> Summary.Image:
    """Encode videos (N, T, C, H, W), from 0 to 1 or uint8, side by side as an animated GIF."""
    from PIL import Image

    if frames.ndim != 5 or frames.shape[2] not in (1, 3):
        raise ValueError(f"a video is of shape (N, T, C, H, W) with 1 or 3 channels, but got {frames.shape}")
    if not fps > 0:
        raise ValueError(f"fps must be positive, but got {fps}")
    if frames.dtype != np.uint8:
        frames = (np.clip(frames.astype(np.float64), 0, 1) * 255).astype(np.uint8)
    count, moments, channels, height, width = frames.shape
    if not count or not moments:
        raise ValueError(f"a video has frames, but got shape {frames.shape}")
    beside = frames.transpose(1, 3, 0, 4, 2).reshape(moments, height, count * width, channels)
    pictures = [Image.fromarray(np.repeat(one, 3, axis=-1) if channels == 1 else one) for one in beside]
    file = io.BytesIO()
    pictures[0].save(file, format="GIF", save_all=True, append_images=pictures[1:], duration=1000 / fps, loop=0)
    return Summary.Image(height=height, width=count * width, colorspace=3, encoded_image_string=file.getvalue())


def mesh(
    tag: str, vertices: Array, colors: Array | None, faces: Array | None, config: dict[str, Any] | None
) -> Summary:
    """Encode vertices (B, N, 3) with optional colors and triangle faces."""
    parts = [("VERTEX", vertices, "DT_FLOAT"), ("FACE", faces, "DT_INT32"), ("COLOR", colors, "DT_FLOAT")]
    for name, part, _ in parts:
        if part is not None and (part.ndim != 3 or part.shape[-1] != 3):
            raise ValueError(f"a mesh is of arrays (B, N, 3), but {name.lower()} has shape {part.shape}")
    kinds = [MeshPluginData.ContentType.Value(name) for name, part, _ in parts if part is not None]
    components = mesh_metadata.get_components_bitmask(kinds)
    values = []
    for name, part, dtype in parts:
        if part is None:
            continue
        kind = MeshPluginData.ContentType.Value(name)
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in part.shape])
        numbers = {"float_val" if dtype == "DT_FLOAT" else "int_val": part.ravel().tolist()}
        metadata = mesh_metadata.create_summary_metadata(
            tag,
            None,
            kind,
            components,
            list(part.shape),
            description="",
            json_config=json.dumps(config or {}, sort_keys=True),
        )
        instance = mesh_metadata.get_instance_name(tag, kind)
        values.append(
            Summary.Value(
                tag=instance, tensor=TensorProto(dtype=dtype, tensor_shape=shape, **numbers), metadata=metadata
            )
        )
    return Summary(value=values)


def write_embedding(folder: Path, points: Array, metadata: Any, header: Any, images: Array | None) -> None:
    """Write points (N, D) as a table, with optional labels and a sprite of images."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "tensors.tsv", "w") as file:
        for row in points:
            file.write("\t".join(map(repr, row.tolist())) + "\n")
    if metadata is not None:
        if len(metadata) != len(points):
            raise ValueError(f"there are {len(points)} points and {len(metadata)} entries of metadata")
        with open(folder / "metadata.tsv", "w") as file:
            if header:
                file.write("\t".join(map(str, header)) + "\n")
            for entry in metadata:
                file.write(("\t".join(map(str, entry)) if header else str(entry)) + "\n")
    if images is not None:
        from PIL import Image

        if images.ndim != 4 or len(images) != len(points):
            raise ValueError(
                f"there are {len(points)} points, but the images have shape {images.shape} instead of (N, C, H, W)"
            )
        count, channels, height, width = images.shape
        side = int(np.ceil(np.sqrt(count)))
        sheet = np.zeros((side * height, side * width, channels), np.uint8)
        for number, one in enumerate(images):
            top, left = number // side * height, number % side * width
            pixels = one if one.dtype == np.uint8 else (np.clip(one.astype(np.float64), 0, 1) * 255).astype(np.uint8)
            sheet[top : top + height, left : left + width] = pixels.transpose(1, 2, 0)
        Image.fromarray(sheet[..., 0] if channels == 1 else sheet).save(folder / "sprite.png")


def graph_of(model: Any, inputs: tuple[Any, ...]) -> GraphDef:
    """Run a model and build its graph, with one node per call of a module without submodules."""
    graph = GraphDef()
    graph.versions.producer = 22
    #: Node that produced each tensor, by id. The tensors are kept alive so that ids stay unique.
    made: dict[int, str] = {}
    kept: list[Any] = []
    used: dict[str, int] = {}

    def tensors(value: Any) -> list[Any]:
        if isinstance(value, candelabra.Tensor):
            return [value]
        if isinstance(value, dict):
            value = list(value.values())
        return [found for part in value for found in tensors(part)] if isinstance(value, list | tuple) else []

    def add(name: str, kind: str, given: Any, results: Any) -> None:
        count = used[name] = used.get(name, 0) + 1
        node = graph.node.add(name=name if count == 1 else f"{name}_{count - 1}", op=kind)
        node.input.extend(dict.fromkeys(made[id(tensor)] for tensor in tensors(given) if id(tensor) in made))
        shapes = node.attr["_output_shapes"].list
        for tensor in tensors(results):
            made[id(tensor)] = node.name
            kept.append(tensor)
            shapes.shape.append(TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in tensor.shape]))

    for number, tensor in enumerate(tensors(inputs)):
        add(f"input/{number}", "Placeholder", (), tensor)
    root = type(model).__name__
    handles = []
    for name, module in model.named_modules():
        path = "/".join([root, *filter(None, name.split("."))])
        handles.append(
            module.register_forward_hook(
                lambda module, given, results, path=path: (
                    add(path, type(module).__name__, given, results) if not next(module.children(), None) else None
                )
            )
        )
    try:
        with candelabra.no_grad():
            results = model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    add("output", "Identity", results, ())
    return graph
