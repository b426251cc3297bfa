"""Messages of the ``onnx`` package, made of the parts of a converted graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import candelabra
import candelabra.export
from candelabra import Tensor
from candelabra.export.interface import Size

from .builder import ELEMENT_TYPES, OnnxNode
from .converting import Converted, element_type
from .geometry import Place
from .requirements import onnx_package

#: The first version of the file format with each operator set that has one of its own.
_FORMATS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13}
#: Smaller initializers stay in the model when others are in a file of their own.
_LEAST_EXTERNAL = 1024
#: The data of initializers in a file of their own begin at multiples of this.
_ALIGNMENT = 64
_COPIED = 1 << 26


def model_of(converted: Converted, name: str, opset: int, dim_names: Mapping[tuple[str, int], str]) -> Any:
    """Return a ``ModelProto`` without the initializers.

    Parameters
    ----------
    converted
        The parts of the graph.
    name
        The name of the graph.
    opset
        The version of the operator set.
    dim_names
        Names of sizes that differ from call to call, by result and dimension.
    """
    onnx = onnx_package()
    nodes = [_node(onnx, node) for node in converted.nodes]
    inputs = [_described(onnx, one, place, dim_names) for one, place in converted.inputs]
    outputs = [_described(onnx, one, place, dim_names) for one, place in converted.outputs]
    graph = onnx.helper.make_graph(nodes, name, inputs, outputs)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)], producer_name="candelabra",
        producer_version=candelabra.__version__,
    )  # fmt: skip
    model.ir_version = min(_FORMATS.get(opset, model.ir_version), model.ir_version)
    return model


def _node(onnx: Any, node: OnnxNode) -> Any:
    attributes = {
        key: tensor_message(value) if isinstance(value, Tensor) else value for key, value in node.attributes.items()
    }
    return onnx.helper.make_node(node.kind, node.inputs, node.outputs, name=f"node_{node.outputs[0]}", **attributes)


def _described(onnx: Any, name: str, place: Place, dim_names: Mapping[tuple[str, int], str]) -> Any:
    known = place.names or {}
    shape = [
        dim_names.get((name, dim), known.get(dim, f"{name}_dim_{dim}")) if isinstance(size, Size) else size
        for dim, size in enumerate(place.shape)
    ]
    return onnx.helper.make_tensor_value_info(name, element_type(place.dtype), shape)


def _bytes(tensor: Tensor) -> memoryview:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return memoryview(flat.view(candelabra.uint8).numpy()) if flat.numel() else memoryview(b"")


def tensor_message(tensor: Tensor, name: str = "") -> Any:
    """Return a ``TensorProto`` with the values of a tensor."""
    made = onnx_package().TensorProto()
    made.name = name
    made.data_type = element_type(tensor.dtype)
    made.dims.extend(tensor.shape)
    made.raw_data = _bytes(tensor).tobytes()
    return made


def tensor_of(message: Any) -> Tensor:
    """Return the tensor of a ``TensorProto``."""
    dtype = next(one for one, number in ELEMENT_TYPES.items() if number == message.data_type)
    array = onnx_package().numpy_helper.to_array(message)
    flat = (
        candelabra.frombuffer(bytearray(array.tobytes()), dtype=dtype)
        if array.size
        else candelabra.empty(0, dtype=dtype)
    )
    return flat.reshape(tuple(message.dims))


def size_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes that tensors have together."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def write_external(tensors: Mapping[str, Tensor], path: Path) -> Iterator[Any]:
    """Iterate over ``TensorProto`` whose data are written to a file; small ones keep theirs.

    There is no file if all are small.
    """
    file: BinaryIO | None = None
    try:
        for name, tensor in tensors.items():
            if size_of([tensor]) < _LEAST_EXTERNAL:
                yield tensor_message(tensor, name)
                continue
            if file is None:
                file = path.open("wb")
            yield _written(file, path.name, name, tensor)
    finally:
        if file is not None:
            file.close()


def _written(file: BinaryIO, file_name: str, name: str, tensor: Tensor) -> Any:
    onnx = onnx_package()
    file.write(bytes(-file.tell() % _ALIGNMENT))
    start, data = file.tell(), _bytes(tensor)
    for at in range(0, len(data), _COPIED):
        file.write(data[at : at + _COPIED])
    made = onnx.TensorProto()
    made.name = name
    made.data_type = element_type(tensor.dtype)
    made.dims.extend(tensor.shape)
    made.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", file_name), ("offset", str(start)), ("length", str(len(data)))):
        entry = made.external_data.add()
        entry.key, entry.value = key, value
    return made
