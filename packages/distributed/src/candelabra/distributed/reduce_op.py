"""How collectives combine tensors."""

from __future__ import annotations

import enum
from typing import NoReturn


class ReduceOp(enum.Enum):
    """How collectives combine the tensors of the ranks.

    Examples
    --------
    >>> from candelabra.distributed import ReduceOp
    >>> ReduceOp.SUM
    <ReduceOp.SUM: 0>
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


# In PyTorch, the operations are of a class within this one, which libraries name.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

#: The names that engines know.
_NAMES = {
    ReduceOp.SUM: "sum", ReduceOp.AVG: "mean", ReduceOp.PRODUCT: "product", ReduceOp.MIN: "min", ReduceOp.MAX: "max",
    ReduceOp.BAND: "band", ReduceOp.BOR: "bor", ReduceOp.BXOR: "bxor",
}  # fmt: skip
_FOR_COMPLEX = ("sum", "mean")


def engine_name(op: ReduceOp) -> str:
    """Return the name of a reduction for engines.

    Raises
    ------
    NotImplementedError
        ``PREMUL_SUM``.
    """
    try:
        return _NAMES[op]
    except KeyError:
        _refuse(op)


def _refuse(op: ReduceOp) -> NoReturn:
    if op is ReduceOp.PREMUL_SUM:
        raise NotImplementedError("ReduceOp.PREMUL_SUM: multiply the tensor, then reduce it by ReduceOp.SUM")
    raise TypeError(f"op must be a ReduceOp, not {op!r}")


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Return whether complex tensors can be reduced so.

    Examples
    --------
    >>> from candelabra.distributed import ReduceOp, supports_complex
    >>> supports_complex(ReduceOp.MAX)
    False
    """
    return _NAMES.get(reduceOp) in _FOR_COMPLEX
