"""``torch.onnx``: the names of candelabra-compile's onnx, if it is installed, and others.

Without it, `export` raises.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["register_custom_op_symbolic", "unregister_custom_op_symbolic"]
if importlib.util.find_spec("candelabra.onnx") is None:
    __all__ += ["export", "is_in_onnx_export"]

#: What `register_custom_op_symbolic` was given, by operator and version of the operator set.
_custom: dict[tuple[str, int], Callable[..., Any]] = {}


def export(*arguments: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError, because there is no exporter."""
    raise NotImplementedError("torch.onnx.export(): pip install 'candelabra-compile[onnx]'")


def is_in_onnx_export() -> bool:
    """Return False, because there is no exporter."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Say how an operator of a library is exported, for an exporter of TorchScript graphs.

    Raises
    ------
    ValueError
        If the name is not of the form ``namespace::operator``.
    """
    if not symbolic_name.partition("::")[2]:
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name"
        )
    _custom[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget how an operator of a library is exported."""
    _custom.pop((symbolic_name, opset_version), None)
