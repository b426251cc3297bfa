"""`ONNXProgram`: a program that was written as ONNX."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import candelabra
import candelabra.export
from candelabra import _C, Tensor, pytree
from candelabra.export.interface import ExportedProgram

from .assembling import size_of, tensor_message, tensor_of, write_external
from .errors import OnnxExporterError, OnnxExporterWarning
from .requirements import onnx_package, runtime_package

#: The greatest size of initializers in a model that is one message; the format allows 2 GB in all.
_LARGEST_MESSAGE = 1536 << 20


class ONNXProgram:
    """An ONNX model with its weights, which is saved, or called with tensors.

    The names are those of ``torch.onnx.ONNXProgram``.

    Parameters
    ----------
    model
        The ``ModelProto`` without initializers.
    initializers
        The weights by name.
    exported_program
        The program that was written as ONNX.

    Attributes
    ----------
    exported_program
        The program that was written as ONNX.
    """

    def __init__(
        self, model: Any, initializers: Mapping[str, Tensor], exported_program: ExportedProgram | None = None
    ) -> None:
        self._model = model
        self._initializers = dict(initializers)
        self.exported_program = exported_program
        self._session: Any = None

    def __repr__(self) -> str:
        return f"ONNXProgram(\n{onnx_package().printer.to_text(self._model)}\n)"

    @property
    def model_proto(self) -> Any:
        """The model as a ``ModelProto``, weights included.

        Raises
        ------
        OnnxExporterError
            If the weights are too large for one message.
        """
        if size_of(self._initializers.values()) > _LARGEST_MESSAGE:
            raise OnnxExporterError(
                "the weights are too large for one message of 2 GB; ONNXProgram.save() writes them to a file"
            )
        return self._with_initializers(tensor_message(tensor, name) for name, tensor in self._initializers.items())

    def _with_initializers(self, messages: Any) -> Any:
        model = onnx_package().ModelProto()
        model.CopyFrom(self._model)
        model.graph.initializer.extend(messages)
        return model

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file.

        Parameters
        ----------
        destination
            The path.
        include_initializers
            Whether to write the weights.
        keep_initializers_as_inputs
            Whether the weights are inputs, too, so that a call may replace them.
        external_data
            Whether the weights are in a file of their own beside the model, with ``.data`` after
            its name. Weights above 1.5 GB always are.

        Examples
        --------
        >>> program.save("model.onnx")  # doctest: +SKIP
        """
        path = Path(destination)
        tensors = self._initializers if include_initializers else {}
        if external_data or size_of(tensors.values()) > _LARGEST_MESSAGE:
            messages = list(write_external(tensors, path.with_name(path.name + ".data")))
        else:
            messages = [tensor_message(tensor, name) for name, tensor in tensors.items()]
        model = self._with_initializers(messages)
        if keep_initializers_as_inputs:
            helper = onnx_package().helper
            for name, tensor in self._initializers.items():
                data_type = tensor_message(tensor[:0] if tensor.ndim else tensor).data_type
                model.graph.input.append(helper.make_tensor_value_info(name, data_type, list(tensor.shape)))
        path.write_bytes(model.SerializeToString())

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replace weights by others of the same names; warn of names that the model lacks."""
        for name, tensor in state_dict.items():
            if name in self._initializers:
                self._initializers[name] = tensor
            else:
                _C.warn(f"Weight '{name}' not found in the model. Skipped applying.", OnnxExporterWarning)
        self.release()

    def initialize_inference_session(self, initializer: Callable[[str | bytes], Any] | None = None) -> None:
        """Make the session of ONNX Runtime that calls use.

        Parameters
        ----------
        initializer
            Makes it, given the path of the model or its bytes.
        """
        make = initializer or _session_of
        if size_of(self._initializers.values()) <= _LARGEST_MESSAGE:
            self._session = make(self.model_proto.SerializeToString())
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path, external_data=True)
            self._session = make(path)

    def release(self) -> None:
        """Give up the session of ONNX Runtime; the next call makes a new one."""
        self._session = None

    def optimize(self) -> None:
        """Do nothing: what follows from constants only was computed at the export."""

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Rename sizes that differ from call to call.

        Parameters
        ----------
        rename_mapping
            New names by present ones.
        """
        graph = self._model.graph
        for one in (*graph.input, *graph.output):
            for dim in one.type.tensor_type.shape.dim:
                if dim.dim_param in rename_mapping:
                    dim.dim_param = rename_mapping[dim.dim_param]

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model by the slow evaluator of ``onnx``, which has all dtypes."""
        onnx = onnx_package()
        evaluator = onnx_package("onnx.reference").ReferenceEvaluator(self.model_proto)
        feed = {
            name: onnx.numpy_helper.to_array(tensor_message(leaf)) for name, leaf in self._fed(args, kwargs).items()
        }
        return tuple(tensor_of(onnx.numpy_helper.from_array(one)) for one in evaluator.run(None, feed))

    def _fed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
        """Return the tensors of a call by the names of the inputs."""
        leaves = [leaf for leaf in pytree.tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        names = [one.name for one in self._model.graph.input]
        if len(leaves) != len(names):
            raise TypeError(f"the program takes {len(names)} tensors, {names}, but got {len(leaves)}")
        return dict(zip(names, leaves, strict=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model with the arguments of the exported module, by ONNX Runtime on the CPU.

        Raises
        ------
        ModuleNotFoundError
            If ``onnxruntime`` is not installed.
        """
        runtime = runtime_package()
        if self._session is None:
            self.initialize_inference_session()
        feed = {name: _runtime_value(runtime, leaf) for name, leaf in self._fed(args, kwargs).items()}
        return tuple(_tensor_of(value) for value in self._session.run_with_ort_values(None, feed))


def _session_of(model: str | bytes) -> Any:
    runtime = runtime_package()
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    return runtime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])


def _runtime_value(runtime: Any, tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is candelabra.bfloat16:
        data_type = onnx_package().TensorProto.BFLOAT16
        bits = tensor.view(candelabra.int16).numpy().view("uint16")
        return runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, data_type)
    return runtime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def _tensor_of(value: Any) -> Tensor:
    if value.element_type() == onnx_package().TensorProto.BFLOAT16:
        return candelabra.from_dlpack(value._get_c_value())
    return candelabra.from_numpy(value.numpy())
