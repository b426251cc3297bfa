"""`export`: write a module as ONNX."""

from __future__ import annotations

import contextlib
import enum
import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import candelabra
from candelabra import _C, Tensor, nn, pytree
from candelabra import export as programs
from candelabra.export.interface import ExportedProgram, ExportError, exported_graph

from .assembling import model_of, tensor_of
from .converting import Converter
from .dynamic_axes import Axes, axes_by_name, shapes_of_axes, with_dims
from .errors import OnnxExporterError, OnnxExporterWarning
from .program import ONNXProgram
from .requirements import onnx_package

_DEFAULT_OPSET = 20
#: The rules are those of this version of the operator set, and of later ones.
_LEAST_OPSET = 18
_MOST_OPSET = 23
_depth = 0


class TrainingMode(enum.IntEnum):
    """The mode of the module while it is exported with ``dynamo=False``."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """Kinds of operators; only those of ONNX are written."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """Return whether a module is called in order to be written as ONNX."""
    return _depth > 0


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def export(
    model: nn.Module | ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] | Tensor = (),
    f: str | os.PathLike[str] | io.BytesIO | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: dict[Any, Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Axes | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Write a module as ONNX, with the arguments of ``torch.onnx.export``.

    The module is recorded by `candelabra.export.export`, whose rules hold. The weights are
    initializers with the names of the state dict.

    Parameters
    ----------
    model
        The module, or a program that was exported.
    args, kwargs
        The arguments of the call. Tensors are inputs of the model; other values are those of all
        calls.
    f
        The path to write to, or None for a program that is saved later.
    input_names, output_names
        Names of the inputs and outputs, in order.
    opset_version
        The version of ONNX's operator set, by default 20. Versions before 18 are made of 18 by the
        converter of ``onnx``.
    dynamic_shapes
        Sizes that differ from call to call, as `candelabra.export.export` has them, or their names.
    dynamic_axes
        The same by names of inputs, as earlier versions of PyTorch have it.
    external_data
        Whether the weights are in a file of their own beside the model.
    export_params, keep_initializers_as_inputs
        Whether the weights are written, and whether they are inputs, too.
    verify
        Whether to compare with ONNX Runtime.
    report, dump_exported_program, artifacts_dir
        Whether to write a list of the operators, and the exported program, and where.
    dynamo
        With False, `training` applies, the weights are in the model, and None is returned.
    verbose
        Whether to print the model.
    training
        With ``dynamo=False``, the mode of the module.
    custom_translation_table, profile, custom_opsets, export_modules_as_functions
        Not supported.
    optimize, do_constant_folding, operator_export_type, autograd_inlining
        Accepted for compatibility. What follows from constants only is always computed.

    Returns
    -------
    ONNXProgram or None

    Raises
    ------
    OnnxExporterError
        If the module cannot be recorded, or not be written as ONNX.
    ModuleNotFoundError
        If ``onnx`` is not installed.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> model = nn.Linear(3, 2).eval()
    >>> program = candelabra.onnx.export(  # doctest: +SKIP
    ...     model, (candelabra.ones(4, 3),), "model.onnx", dynamic_shapes=({0: "batch"},))
    """
    _refuse_unsupported(
        custom_translation_table, profile, custom_opsets, export_modules_as_functions, operator_export_type
    )
    onnx_package()
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    if not kwargs and args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], args[-1]
    given = dict(kwargs or {})
    if not dynamo and not isinstance(model, ExportedProgram):
        _warn_of_old(dynamic_shapes)
        shapes = dynamic_axes
        with _in_mode(model, training):
            program = _program(model, args, given, None, shapes, input_names, output_names)
        external_data = False
    else:
        _warn_of_mode(model, dynamic_shapes, dynamic_axes)
        program = _program(model, args, given, dynamic_shapes, dynamic_axes, input_names, output_names)
    made = written(program, opset_version or _DEFAULT_OPSET, input_names, output_names, dynamic_axes)
    if verify:
        _verify(made, program, args, given)
    if report or dump_exported_program:
        _write_artifacts(made, program, Path(artifacts_dir), report, dump_exported_program)
    if verbose:
        print(made)
    if isinstance(f, io.BytesIO):
        f.write(made.model_proto.SerializeToString())
    elif f is not None:
        made.save(
            f, include_initializers=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs, external_data=external_data
        )  # fmt: skip
    return made if dynamo or isinstance(model, ExportedProgram) else None


def _refuse_unsupported(table: Any, profile: bool, opsets: Any, functions: Any, kind: OperatorExportTypes) -> None:
    for name, is_given in (
        ("custom_translation_table", bool(table)), ("profile", profile), ("custom_opsets", bool(opsets)),
        ("export_modules_as_functions", bool(functions)), ("operator_export_type", kind != OperatorExportTypes.ONNX),
    ):  # fmt: skip
        if is_given:
            raise NotImplementedError(f"onnx.export(): {name} is not supported")


def _warn_of_old(dynamic_shapes: Any) -> None:
    _C.warn("onnx.export() with dynamo=False is deprecated; leave it out", DeprecationWarning)
    if dynamic_shapes:
        raise ValueError("The exporter only supports dynamic shapes through parameter dynamic_axes when dynamo=False.")


def _warn_of_mode(model: Any, dynamic_shapes: Any, dynamic_axes: Axes | None) -> None:
    if isinstance(model, nn.Module) and model.training:
        _C.warn(
            "Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead to different "
            "behavior during inference. Calling model.eval() before export is recommended.",
        )
    if dynamic_axes is not None and dynamic_shapes is None:
        _C.warn("'dynamic_axes' is not recommended; use 'dynamic_shapes' instead")


@contextlib.contextmanager
def _in_mode(model: Any, training: TrainingMode) -> Iterator[None]:
    """Put a module into a mode within the block."""
    if training == TrainingMode.PRESERVE or not isinstance(model, nn.Module):
        yield
        return
    before = [(module, module.training) for module in model.modules()]
    model.train(training == TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def _program(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    dynamic_axes: Axes | None,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> ExportedProgram:
    """Return the program of a call, which is recorded without gradients."""
    if isinstance(model, ExportedProgram):
        return model
    if not callable(model):
        raise TypeError(f"onnx.export() takes a module or an exported program, but got {type(model).__name__}")
    shapes = with_dims(dynamic_shapes)
    if shapes is None and dynamic_axes:
        shapes = shapes_of_axes(model, args, kwargs, dynamic_axes, input_names, output_names)
    module = model if isinstance(model, nn.Module) else None
    signature = model if module is None else module.forward
    try:
        with _exporting(), candelabra.no_grad():
            graph = exported_graph(model, signature, module, args, kwargs, shapes)
    except ExportError as error:
        raise OnnxExporterError(f"the program cannot be recorded: {error}") from error
    return ExportedProgram(graph, (args, kwargs))


def written(
    program: ExportedProgram,
    opset: int,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Axes | None = None,
) -> ONNXProgram:
    """Return an exported program as ONNX.

    Raises
    ------
    ValueError
        If there is no such operator set.
    UnsupportedOperatorError
        If there is no rule for an operator, or not for its arguments.
    """
    onnx = onnx_package()
    most = min(_MOST_OPSET, onnx.defs.onnx_opset_version())
    if not 7 <= opset <= most:
        raise ValueError(f"onnx.export(): opset_version must be from 7 to {most}, but got {opset}")
    graph, used_opset = program._graph, max(opset, _LEAST_OPSET)
    converted = Converter(graph, used_opset).convert(input_names, output_names)
    axes = {name: axes_by_name(name, one) for name, one in (dynamic_axes or {}).items()}
    dim_names = {(name, dim): text for name, one in axes.items() for dim, text in one.items()}
    model = model_of(converted, graph.name, used_opset, dim_names)
    states = {state.name: state.tensor for state in graph.states if state.kind != "constant"}
    weights = {name: tensor for name, tensor in states.items() if name in converted.used}
    made = ONNXProgram(model, weights | converted.constants, program)
    return made if opset == used_opset else _converted_to(made, opset)


def _converted_to(made: ONNXProgram, opset: int) -> ONNXProgram:
    """Return a program in an older operator set, or unchanged, with a warning."""
    converter = onnx_package("onnx.version_converter")
    try:
        model = converter.convert_version(made.model_proto, opset)
    except (RuntimeError, converter.ConvertError) as error:
        _C.warn(
            f"the model stays in operator set {_LEAST_OPSET}, because onnx does not convert it to {opset}: {error}",
            OnnxExporterWarning,
        )
        return made
    initializers = {one.name: tensor_of(one) for one in model.graph.initializer}
    del model.graph.initializer[:]
    return ONNXProgram(model, initializers, made.exported_program)


def _verify(made: ONNXProgram, program: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not args and not kwargs and program.example_inputs is not None:
        args, kwargs = program.example_inputs
    with candelabra.no_grad():
        expected = [leaf for leaf in pytree.tree_leaves(program.module()(*args, **kwargs)) if isinstance(leaf, Tensor)]
    for found, wanted in zip(made(*args, **kwargs), expected, strict=True):
        if found.shape != wanted.shape or not candelabra.allclose(found, wanted.cpu(), 1e-3, 1e-4, equal_nan=True):
            raise OnnxExporterError("ONNX Runtime computes another result than the module")


def _write_artifacts(made: ONNXProgram, program: ExportedProgram, folder: Path, report: bool, dump: bool) -> None:
    stem = f"onnx_export_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    if dump:
        programs.save(program, folder / f"{stem}.cex")
    if report:
        recorded = Counter(node.op for node in program._graph.nodes)
        lines = [f"# Export of {program._graph.name} to ONNX", "", "| operator | calls |", "| -- | -- |"]
        lines += [f"| `{name}` | {count} |" for name, count in recorded.most_common()]
        (folder / f"{stem}_success.md").write_text("\n".join([*lines, "", "```", str(made), "```", ""]))
