"""``torch.onnx.symbolic_helper``: declarations of how operators are exported by TorchScript.

Libraries declare them when they are imported. Only PyTorch's exporter of TorchScript graphs calls
them, which is not here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["parse_args"]

_KINDS = ("v", "i", "is", "f", "fs", "b", "s", "t", "none")


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., NoReturn]]:
    """Declare the kinds of the arguments of a function that exports an operator.

    Raises
    ------
    ValueError
        If a kind is unknown.
    """
    unknown = [kind for kind in arg_descriptors if kind not in _KINDS]
    if unknown:
        raise ValueError(f"parse_args(): unknown kinds of arguments {unknown}; there are {', '.join(_KINDS)}")

    def declare(function: Callable[..., Any]) -> Callable[..., NoReturn]:
        @functools.wraps(function)
        def export(*arguments: Any, **options: Any) -> NoReturn:
            raise NotImplementedError(f"{function.__name__}(): there are no TorchScript graphs to export on Candelabra")

        return export

    return declare
