"""Write programs as ONNX, which other runtimes run.

The names are those of ``torch.onnx``. The package ``onnx`` is needed when a program is written.
"""

from __future__ import annotations

from . import errors
from .errors import OnnxExporterError, OnnxExporterWarning, UnsupportedOperatorError
from .exporting import OperatorExportTypes, TrainingMode, export, is_in_onnx_export
from .program import ONNXProgram

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OnnxExporterWarning", "OperatorExportTypes", "TrainingMode", "UnsupportedOperatorError", "errors",
    "export", "is_in_onnx_export",
]  # fmt: skip
