"""Errors of the export to ONNX, with the names of ``torch.onnx.errors``."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of the export."""


class OnnxExporterError(RuntimeError):
    """A program cannot be written as ONNX; the message says why."""


class UnsupportedOperatorError(OnnxExporterError):
    """There is no ONNX operator for an operator of a program, or not for these arguments.

    Parameters
    ----------
    name
        The operator.
    version
        The version of ONNX's operator set.
    supported_version
        The first version that has what is needed, or None.
    place
        The file and the line of the program that called the operator.
    reason
        What of the call is not supported.
    """

    def __init__(
        self, name: str, version: int, supported_version: int | None = None, *, place: str = "", reason: str = ""
    ) -> None:
        text = f"Exporting the operator '{name}'{f' ({place})' if place else ''} to ONNX opset version {version} is not supported"
        if reason:
            text += f": {reason}"
        if supported_version is not None:
            text += (
                f". Support for this operator was added in version {supported_version}, try exporting with this version"
            )
        super().__init__(text)
        self.name = name
