"""``torch.onnx``: the names of candelabra-compile's onnx, if it is installed, and others.

Without it, `export` raises.
"""

from __future__ import annotations

import contextlib
import enum
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from candelabra.version import __version__

from .unavailable import unavailable_names

_unavailable = unavailable_names("onnx")
globals().update(_unavailable)

__all__ = [
    "TensorProtoDataType", "producer_name", "producer_version", "register_custom_op_symbolic", "select_model_mode_for_export",
    "unregister_custom_op_symbolic", *_unavailable,
]  # fmt: skip
if importlib.util.find_spec("candelabra.onnx") is None:
    __all__ += ["export", "is_in_onnx_export"]

#: What files say that they were written by.
producer_name, producer_version = "candelabra", __version__

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


class TensorProtoDataType(enum.IntEnum):
    """The numbers of dtypes in ONNX."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: Any) -> Iterator[None]:
    """Set the mode of a module, as a member of ``TrainingMode``, while the block lasts."""
    before = getattr(model, "training", None)
    if before is not None and mode is not None and int(mode) != 1:
        model.train(int(mode) == 2)
    try:
        yield
    finally:
        if before is not None:
            model.train(before)
