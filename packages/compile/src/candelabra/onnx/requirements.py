"""The packages that are needed only when a program is written as ONNX, or run by ONNX Runtime."""

from __future__ import annotations

import importlib
from typing import Any


def onnx_package(module: str = "onnx") -> Any:
    """Return the package ``onnx``, or a module of it.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.
    """
    advice = "the export to ONNX writes its files with the package onnx: pip install 'candelabra-compile[onnx]'"
    return _imported(module, advice)


def runtime_package() -> Any:
    """Return the package ``onnxruntime``.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.
    """
    return _imported("onnxruntime", "ONNX programs are run by ONNX Runtime: pip install onnxruntime")


def _imported(name: str, advice: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ModuleNotFoundError(advice, name=name) from None
